"""Compares what hetucc --emit=cost says of examples/gpt and examples/llama with textbook closed forms, under five strategies each.

    closed_forms.py HETUCC

The forms are derived here from the sizes of the models alone: batch B, sequence S, width E, hidden layer F, heads H (of width W), key-value heads K, layers L,
vocabulary V. On a mesh of d data-parallel groups of t devices each, a device has R = B S / d rows. A product of m rows, n columns and k terms has 2 m n k operations,
and its backward twice as many. In a ring all-reduce over n devices, each receives 2 (n - 1) / n of the bytes; in a reduce-scatter or an all-gather (n - 1) / n.
"""
import json
import os
import subprocess
import sys
import tempfile

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")

STRATEGIES = {  # name: (d, t, zero, sequence parallel)
    "dp4": (4, 1, False, False),
    "tp2": (1, 2, False, False),
    "dp2tp2": (2, 2, False, False),
    "zero4": (4, 1, True, False),
    "dp2tp2sp": (2, 2, False, True),
}

FLOAT = 4


def strategy_text(name):
    d, t, zero, sequence = STRATEGIES[name]
    return (f"strategy {name}\n  split batch:dp heads:tp ffn:tp vocab:tp{' seq:tp' if sequence else ''}\n{'  zero 1' if zero else ''}\n"
            f"  stage devices(0-{d * t - 1}) mesh(dp:{d}, tp:{t})\nend strategy\n")


class Gpt:
    B, S, E, H, L, V = 8, 64, 128, 4, 4, 256
    F, K, W = 4 * 128, 4, 32

    def parameters(self, t):
        """(elements on a device, whether tensor parallelism cuts it) of each parameter."""
        E, F = self.E, self.F
        layer = [(E, 0)] * 4 + [(3 * E * E // t, 1), (3 * E // t, 1), (E * E // t, 1), (E, 0), (F * E // t, 1), (F // t, 1), (E * F // t, 1), (E, 0)]
        return [(self.V * E // t, 1), (self.S * E, 0)] + layer * self.L + [(E, 0)] * 2

    def products(self, R, t):
        E, F = self.E, self.F
        layer = 3 * 2 * R * (3 * E * E + E * E + 2 * E * F) // t
        biases = R * (3 * E // t + E + F // t + E)
        gelu = 9 * R * F // t  # computed with the product in front of it
        return self.L * (layer + biases + gelu) + 3 * 2 * R * E * self.V // t

    def saved(self, R, t, c):
        """Bytes kept for backward when most memory is in use. c cuts what lies between blocks along the sequence, what products read of it among that: it is gathered once more."""
        RE, RF = R * self.E, R * self.F
        statistics = 4 * R // c + R * self.H // t
        layer = 4 * RE // c + 4 * RE // t + 2 * RF // t + statistics
        if t > 1:  # where the sequence is cut, when backward begins, and the logits' gradient has taken their place; else when the last norm's gradient is made
            ends = (2 * RE // c + R * self.V // t if c > 1 else RE) + 2 * R // c + self.S // c + 1
            return FLOAT * (self.L * layer + ends)
        # In the last block's hidden layer, two gradients of which are larger than what was given back: the block still has its input, the norm
        # of it, query, key, value, the attention's result and their sum; and one value that counts as a temporary when nothing is fused.
        return FLOAT * ((self.L - 1) * layer + 8 * RE + statistics + self.S + 1)


class Llama:
    B, S, E, H, L, V = 8, 48, 96, 4, 3, 256
    F, K, W = 250, 2, 24

    def parameters(self, t):
        E, F, kv = self.E, self.F, self.K * self.W
        layer = [(E, 0)] * 2 + [(E * E // t, 1), (kv * E // t, 1), (kv * E // t, 1), (E * E // t, 1)] + [(F * E // t, 1)] * 3
        return [(self.V * E // t, 1)] * 2 + layer * self.L + [(E, 0)]

    def products(self, R, t):
        E, F, kv = self.E, self.F, self.K * self.W
        return self.L * 3 * 2 * R * (2 * E * E + 2 * E * kv + 3 * E * F) // t + 3 * 2 * R * E * self.V // t

    def saved(self, R, t, c):
        RE, RF = R * self.E, R * self.F
        layer = 4 * RE // c + (2 * RE + 2 * R * self.K * self.W) // t + 4 * RF // t + 2 * R // c + R * self.H // t
        ends = 2 * RE // c + R * self.V // t + R // c + 1  # when backward begins: the logits' gradient has taken their place
        return FLOAT * (self.L * layer + ends)


def attention_operations(m, d, t):
    """Causal: half of 4 S S W a head forward, and of 10 S S W backward."""
    return 7 * (m.B // d) * (m.H // t) * m.S * m.S * m.W * m.L


def ring(n, size):
    return (n - 1) * size // n


def gradient_bytes(m, d, t, zero, sequence):
    """Received for the sums of gradients; what tensor parallelism does not cut has parts on all devices when the sequence is cut."""
    total = 0
    for elements, cut in m.parameters(t):
        n = d * t if sequence and not cut else d
        total += (1 if zero else 2) * ring(n, FLOAT * elements)
    return total


def activation_bytes(m, d, t, sequence):
    """Received for activations and their gradients under tensor parallelism (Megatron): an all-reduce for each half of a block and for the
    embedding forward, and for each half and the head backward; three numbers a row for the loss over a vocabulary that is cut. Where the sequence is cut, what halves and
    head read is gathered forward and once more backward, as tokens and targets are."""
    R = m.B * m.S // d
    wide, row = FLOAT * R * m.E, FLOAT * R
    if not sequence:
        return 2 * ring(t, wide) * 2 * (2 * m.L + 1) + 2 * ring(t, row) * 3
    return ring(t, wide) * 5 * (2 * m.L + 1) + 4 * ring(t, row) + 6 * ring(t, row)


def expected(m, strategy):
    d, t, zero, sequence = STRATEGIES[strategy]
    R, c = m.B * m.S // d, t if sequence else 1
    elements = sum(n for n, _ in m.parameters(t))
    states = elements // d if zero else elements
    received = gradient_bytes(m, d, t, zero, sequence) + (activation_bytes(m, d, t, sequence) if t > 1 else 0)
    if zero:
        received += ring(d, FLOAT * elements)
    if isinstance(m, Gpt) and sequence:  # the rows of the table of places: summed over the batch on the parts of the sequence first
        received += 2 * ring(d, FLOAT * m.S * m.E // t) - 2 * ring(d * t, FLOAT * m.S * m.E) + 2 * ring(t, FLOAT * m.S * m.E)
    return {
        "products": m.products(R, t),
        "attention": attention_operations(m, d, t),
        "update": 15 * states,
        "parameters": FLOAT * elements,
        "states": 2 * FLOAT * states,
        "inputs": 2 * 4 * R // c,
        "received": received,
        "saved": m.saved(R, t, c),
    }


def reported(role):
    def operations(which):
        return sum(row["operations"] for row in role["operators"] if which(row))

    SCALAR = 8  # the loss and the gradients' norm aside
    return {
        "products": operations(lambda row: row["product"]),
        "attention": operations(lambda row: "attention" in row["operator"]),
        "update": operations(lambda row: "adamw" in row["operator"]),
        "parameters": role["memory"]["parameters"],
        "states": role["memory"]["states"],
        "inputs": role["memory"]["inputs"],
        "received": sum(row["received"] for row in role["conversions"] if row["received"] > SCALAR),
        "saved": role["memory"]["activations"],
    }


def cost(hetucc, model, folder, strategy):
    path = os.path.join(folder, strategy)
    with open(path, "w") as file:
        file.write(strategy_text(strategy))
    run = subprocess.run([hetucc, f"--strategy={path}", "--emit=cost-json", f"{model}.c"], cwd=os.path.join(EXAMPLES, model), check=True, capture_output=True, text=True)
    return next(m for m in json.loads(run.stdout)["models"] if m["kind"] == "train")


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, model in (("gpt", Gpt()), ("llama", Llama())):
            for strategy in STRATEGIES:
                want = expected(model, strategy)
                for role in cost(os.path.abspath(sys.argv[1]), name, folder, strategy)["roles"]:
                    got = reported(role)
                    for key in want:
                        if want[key] != got[key]:
                            print(f"{name} {strategy}: {key} is {got[key]}, not {want[key]}")
                            wrong += 1
    print(f"{2 * len(STRATEGIES)} run, {wrong} wrong")
    sys.exit(wrong > 0)


main()
