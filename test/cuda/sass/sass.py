#!/usr/bin/env python3
"""What a GPU's machine code consists of, read from a cubin: instructions of every kernel, conversions to bf16, spills, and which of these lie in loops.

From compute capability 7.0 on an instruction has 16 bytes; its lowest 9 bits say which it is. A branch says how far it goes from the next instruction on, in units
of 4 bytes. All this is as nvdisasm -hex shows it.

    sass.py FILE.cubin...        a line for each kernel
"""
import pathlib
import struct
import sys

F2FP, NOP, LDL, STL, BRA, IADD3 = 0x3E, 0x118, 0x183, 0x187, 0x147, 0x10
HALF = 0x7FFF  # what is added to a float where it is rounded to bf16 by hand
BYTES = 16


def sections(data):
    """(name, content) of an ELF file's sections, 64 bits, least significant byte first."""
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", data, offset + size * i) for i in range(count)]
    text = data[heads[names][4]:][:heads[names][5]]
    for name, kind, _, _, at, length in heads:
        yield text[name:text.index(b"\0", name)].decode(), data[at:at + length] if kind != 8 else b""


def architecture(data):
    """90 for sm_90; it lies in another byte of the ELF header since CUDA 13."""
    flags, = struct.unpack_from("<I", data, 0x30)
    return (flags >> 8 if data[8] >= 8 else flags) & 0xFF


def target(low, high, at, sm):
    """Where a branch at byte `at` goes: a signed number from bit 34 on, of 48 bits; since sm_90 bits 16 to 23 lie below it."""
    value = ((high << 64 | low) >> 34) & (1 << 48) - 1
    value -= 1 << 48 if value >> 47 else 0
    return at + BYTES + (value if sm < 90 else value << 8 | low >> 16 & 0xFF) * 4


class Kernel:
    def __init__(self, name, code, sm):
        self.name = name
        words = [struct.unpack_from("<QQ", code, at) for at in range(0, len(code) - BYTES + 1, BYTES)]
        ops = [low & 0x1FF for low, _ in words]
        self.count = sum(op != NOP for op in ops)
        self.conversions = ops.count(F2FP)
        self.roundings = sum(low >> 32 == HALF and op == IADD3 for op, (low, _) in zip(ops, words))
        self.spills = ops.count(LDL) + ops.count(STL)
        # A branch to itself stands behind the last instruction.
        loops = [(target(*words[i], BYTES * i, sm) // BYTES, i) for i, op in enumerate(ops) if op == BRA]
        inside = {j for first, last in loops if 0 <= first < last for j in range(first, last + 1)}
        self.loop_spills = sum(ops[j] in (LDL, STL) for j in inside)
        self.loop_count = sum(ops[j] != NOP for j in inside)


    def line(self):
        return (f"{self.count:6} instructions, {self.loop_count:6} in loops, {self.conversions:5} conversions to bf16, {self.roundings:3} by hand, {self.spills:4} spills, "
                f"{self.loop_spills:3} in loops: {self.name}")


def kernels(path):
    """The kernels of a cubin by their (mangled) names."""
    data = pathlib.Path(path).read_bytes()
    if data[:5] != b"\x7fELF\x02":
        raise ValueError(f"{path} is no cubin")
    return {name[6:]: Kernel(name[6:], code, architecture(data)) for name, code in sections(data) if name.startswith(".text.")}


def main():
    for path in sys.argv[1:]:
        for k in kernels(path).values():
            print(k.line())


if __name__ == "__main__":
    main()
