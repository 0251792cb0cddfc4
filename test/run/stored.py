#!/usr/bin/env python3
"""Tests parameters in files of other tools (checkpoint/foreign_tensors.h), with the names and the order of those tools: all of them are loaded, on one device and on four, and errors are reported.

The test writes the files by the formats' descriptions: https://github.com/huggingface/safetensors#format, and llm.c's train_gpt2.py. F16 and BF16 hold the numbers exactly. Where transformers is
installed (HETU_LONG=1), models with random weights that transformers saves give its logits within 1e-4.
"""
import functools
import json
import struct
import subprocess
import sys

import harness
from harness import EXAMPLES, Failure, launch

PLACES, LAYERS, EMBED, HEADS, VOCAB, FFN, KEYS = 20, 2, 24, 3, 256, 40, 1
FLAGS = {"gpt": (f"-DLAYERS={LAYERS}", f"-DEMBED={EMBED}", f"-DHEADS={HEADS}", f"-DSEQ={PLACES}", "-DBATCH=2"),
         "llama": (f"-DLAYERS={LAYERS}", f"-DEMBED={2 * EMBED}", f"-DHEADS={HEADS}", f"-DKV_HEADS={KEYS}", f"-DFFN={FFN}", f"-DSEQ={PLACES}", "-DBATCH=2")}
STRATEGIES = {"gpt": str(EXAMPLES / "gpt" / "strategies" / "dp2tp2sp.strategy"), "llama": "tp4"}


def gpt_layout():
    """(our name, the name of transformers, the shape, whether theirs is transposed)"""
    rows = [("tokens.w", "wte.weight", (VOCAB, EMBED), False), ("places.w", "wpe.weight", (PLACES, EMBED), False)]
    for layer in range(LAYERS):
        for ours, theirs, rank, columns in (("attn.qkv", "attn.c_attn", 3 * EMBED, EMBED), ("attn.proj", "attn.c_proj", EMBED, EMBED), ("mlp.up", "mlp.c_fc", 4 * EMBED, EMBED),
                                            ("mlp.down", "mlp.c_proj", EMBED, 4 * EMBED)):
            rows.append((f"h{layer}.{ours}.w", f"h.{layer}.{theirs}.weight", (rank, columns), True))
            rows.append((f"h{layer}.{ours}.b", f"h.{layer}.{theirs}.bias", (rank,), False))
        for ours, theirs in ("ln1", "ln_1"), ("ln2", "ln_2"):
            rows += [(f"h{layer}.{ours}.g", f"h.{layer}.{theirs}.weight", (EMBED,), False), (f"h{layer}.{ours}.b", f"h.{layer}.{theirs}.bias", (EMBED,), False)]
    return rows + [("ln.g", "ln_f.weight", (EMBED,), False), ("ln.b", "ln_f.bias", (EMBED,), False)]


def llama_layout():
    wide, keys = 2 * EMBED, 2 * EMBED // HEADS * KEYS
    rows = [("tokens.w", "model.embed_tokens.weight", (VOCAB, wide)), ("norm.g", "model.norm.weight", (wide,))]
    for layer in range(LAYERS):
        of = f"model.layers.{layer}"
        rows += [(f"h{layer}.attn.{n}.w", f"{of}.self_attn.{n}_proj.weight", (rank, wide)) for n, rank in (("q", wide), ("k", keys), ("v", keys), ("o", wide))]
        rows += [(f"h{layer}.mlp.{n}.w", f"{of}.mlp.{n}_proj.weight", shape) for n, shape in (("gate", (FFN, wide)), ("up", (FFN, wide)), ("down", (wide, FFN)))]
        rows += [(f"h{layer}.norm1.g", f"{of}.input_layernorm.weight", (wide,)), (f"h{layer}.norm2.g", f"{of}.post_attention_layernorm.weight", (wide,))]
    return [(*row, False) for row in rows]


LAYOUTS = {"gpt": gpt_layout(), "llama": llama_layout()}


def values(example):
    """{our name: numbers} of few bits."""
    found = {}
    for number, (name, _, shape, _) in enumerate(LAYOUTS[example]):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        found[name] = [((i * 37 + number * 11) % 61 - 30) / 64 for i in range(count)]
    return found


def turned(numbers, shape):
    rows, columns = shape
    return [numbers[r * columns + c] for c in range(columns) for r in range(rows)]


def packed(numbers, dtype):
    """Little-endian bytes."""
    if dtype == "BF16":
        return b"".join(struct.pack("<f", x)[2:] for x in numbers)
    return struct.pack(f"<{len(numbers)}{'f' if dtype == 'F32' else 'e'}", *numbers)


def write_tensors(path, rows, dtype):
    """rows: (name, shape, numbers)"""
    header, data = {}, b""
    for name, shape, numbers in rows:
        more = packed(numbers, dtype)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(more)]}
        data += more
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def hub_rows(example, prefix=""):
    own = values(example)
    return [(prefix + theirs, shape[::-1] if transposed else shape, turned(own[name], shape) if transposed else own[name]) for name, theirs, shape, transposed in LAYOUTS[example]]


def llm_c_file(path, version):
    own, header = values("gpt"), [0] * 256
    header[:8] = 20240326, version, PLACES, VOCAB, LAYERS, HEADS, EMBED, VOCAB + 3
    order = ["ln1.g", "ln1.b", "attn.qkv.w", "attn.qkv.b", "attn.proj.w", "attn.proj.b", "ln2.g", "ln2.b", "mlp.up.w", "mlp.up.b", "mlp.down.w", "mlp.down.b"]
    numbers = own["tokens.w"] + [9.0] * (3 * EMBED) + own["places.w"]
    for name in order:
        for layer in range(LAYERS):
            numbers += own[f"h{layer}.{name}"]
    path.write_bytes(struct.pack("<256i", *header) + packed(numbers + own["ln.g"] + own["ln.b"], "BF16" if version == 5 else "F32"))


def program(bench, example, ranks):
    source = EXAMPLES / example / f"{example}.c"
    return bench.compiled(source, STRATEGIES[example], FLAGS[example]) if ranks else bench.plain(source, FLAGS[example])


def check(bench, example, ranks, kind):
    """What the parameters are that a file has."""
    path = bench.path(f"{example}.{kind}.{ranks}" + (".bin" if kind in ("llm.c", "llm.c.bf16") else ""))
    rows = hub_rows(example, "transformer." if kind == "prefix" else "")
    if path.suffix == ".bin":
        llm_c_file(path, 5 if kind.endswith("bf16") else 3)
    elif kind == "folder":
        path = path.with_name(f"{path.name}[v2]*")  # which is no pattern
        path.mkdir()
        write_tensors(path / "model-00001-of-00002.safetensors", rows[::2], "F16")
        write_tensors(path / "model-00002-of-00002.safetensors", rows[1::2], "F32")
    else:
        write_tensors(path, rows, "BF16" if kind == "prefix" else "F32")
    dump = bench.path(f"{path.name}.dump")
    launch(program(bench, example, ranks), ranks, "--steps", 0, "--sample", 0, "--load", path, "--dump", dump)
    found, wanted = harness.read_parameters(dump), values(example)
    if example == "llama":  # whose head is not stored
        wanted["head.w"] = wanted["tokens.w"]
    wrong = [name for name in {**found, **wanted} if list(found.get(name, ())) != wanted.get(name)]
    if wrong:
        raise Failure(f"other values of {wrong}")
    return f"{len(found)} parameters"


def check_wrong(bench, ranks):
    """What is missing, and what has another shape or type, is said with the name of the file's, and nothing is loaded."""
    rows = hub_rows("gpt")
    last = rows[-1]
    tried = {"missing": (rows[:-1], "F32", 'it has nothing for the parameter "ln.b"'),
             "shape": (rows[:-1] + [(last[0], (2, EMBED // 2), last[2])], "F32", f'"ln_f.bias" has the shape (2, {EMBED // 2}) in it, and ({EMBED}) here')}
    for name, (some, dtype, wanted) in tried.items():
        path = bench.path(f"wrong.{name}.{ranks}")
        write_tensors(path, some, dtype)
        done = launch(program(bench, "gpt", ranks), ranks, "--steps", 0, "--sample", 0, "--load", path, check=False)
        if done.returncode == 0 or f"cannot load {path}: {wanted}" not in done.stderr:
            raise Failure(done.stdout + done.stderr)


def placed(path, change):
    """A file of three tensors whose places were changed; the data is as long as the last one's end."""
    header = {name: {"dtype": "F32", "shape": [4], "data_offsets": [16 * i, 16 * i + 16]} for i, name in enumerate(("first", "second", "third"))}
    text = change(json.dumps(header)).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(max(entry["data_offsets"][1] for entry in json.loads(text).values())))


PLACES_WRONG = {
    "overlap": (lambda text: text.replace("[16, 32]", "[8, 24]").replace("[32, 48]", "[24, 40]"), 'its tensors "first" (bytes 0 to 16) and "second" (bytes 8 to 24) overlap'),
    "same": (lambda text: text.replace("[16, 32]", "[0, 16]").replace("[32, 48]", "[16, 32]"), 'its tensors "first" (bytes 0 to 16) and "second" (bytes 0 to 16) overlap'),
    "inside": (lambda text: text.replace('[4], "data_offsets": [32, 48]', '[2], "data_offsets": [20, 28]'), 'its tensors "second" (bytes 16 to 32) and "third" (bytes 20 to 28) overlap'),
    "hole": (lambda text: text.replace("[32, 48]", "[40, 56]"), 'its bytes 32 to 40, in front of the tensor "third", belong to no tensor'),
    "begin": (lambda text: text.replace("[32, 48]", "[56, 72]").replace("[16, 32]", "[40, 56]").replace("[0, 16]", "[24, 40]"), 'its bytes 0 to 24, in front of the tensor "first", belong to no tensor'),
    "twice": (lambda text: text.replace('"second"', '"first"'), 'it has two tensors "first"'),
}


def check_places(bench, ranks):
    """Tensors that overlap, leave holes or share a name are named."""
    for name, (change, wanted) in PLACES_WRONG.items():
        path = bench.path(f"places.{name}.{ranks}")
        placed(path, change)
        done = launch(program(bench, "gpt", ranks), ranks, "--steps", 0, "--sample", 0, "--load", path, check=False)
        if done.returncode == 0 or f"cannot load {path}: {wanted}" not in done.stderr:
            raise Failure(f"{name}: {done.stdout}{done.stderr}")


# ---- transformers ----

TRANSFORMERS = """
import sys, torch, transformers
torch.manual_seed(3)
if sys.argv[1] == "gpt":
    config = transformers.GPT2Config(vocab_size=256, n_positions=20, n_embd=24, n_layer=2, n_head=3)
    model = transformers.GPT2LMHeadModel(config)
else:
    config = transformers.LlamaConfig(vocab_size=256, hidden_size=48, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, rms_norm_eps=1e-5)
    model = transformers.LlamaForCausalLM(config)
for p in model.parameters():
    p.data.add_(torch.randn_like(p) * 0.1)
model = model.eval()
model.save_pretrained(sys.argv[2], max_shard_size="40KB")
text = open(sys.argv[3], "rb").read()
rows = 1 if sys.argv[1] == "gpt" else 2
tokens = torch.tensor([text[i] for i in range(20 * rows)]).reshape(rows, 20)
open(sys.argv[4], "wb").write(model(tokens).logits.detach().numpy().astype("<f4").tobytes())
"""


def check_transformers(bench, example, ranks):
    folder, text, wanted, found = (bench.path(f"{example}.{ranks}.{name}") for name in ("hub", "text", "wanted", "found"))
    text.write_text("The quick brown fox jumps over the lazy dog, and goes on to another forest. " * 9)
    harness.run([sys.executable, "-c", TRANSFORMERS, example, folder, text, wanted], timeout=600)
    launch(program(bench, example, ranks), ranks, "--steps", 0, "--sample", 0, "--load", folder, "--data", text, "--logits", found)
    wanted, found = (struct.unpack(f"<{len(data) // 4}f", data) for data in (wanted.read_bytes(), found.read_bytes()))
    worst = max(abs(a - b) for a, b in zip(found, wanted, strict=True))
    if worst > 1e-4:
        raise Failure(f"a logit is {worst:.2g} off")
    return f"{len(found)} logits of up to {max(map(abs, wanted)):.2g} within {worst:.1g}"


def tests(bench, _):
    case = functools.partial
    for ranks, kind in (0, "folder"), (4, "prefix"), (4, "llm.c"), (0, "llm.c.bf16"):
        yield f"gpt.{kind}.{ranks}", case(check, bench, "gpt", ranks, kind)
    for ranks, kind in (0, "file"), (4, "folder"):
        yield f"llama.{kind}.{ranks}", case(check, bench, "llama", ranks, kind)
    for ranks in 0, 4:
        yield f"wrong.{ranks}", case(check_wrong, bench, ranks)
        yield f"places.{ranks}", case(check_places, bench, ranks), ranks == 4
    if harness.LONG and subprocess.run([sys.executable, "-c", "import transformers"], capture_output=True).returncode:
        print("transformers is not installed: its models are not tried")
    elif harness.LONG:
        for example in FLAGS:
            for ranks in 0, 4:
                yield f"transformers.{example}.{ranks}", case(check_transformers, bench, example, ranks)


if __name__ == "__main__":
    harness.MEETS = True
    harness.main("run.stored", tests)
