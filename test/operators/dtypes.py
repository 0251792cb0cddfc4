"""Every operator with every element type of its operands: the plain compiler and hetucc accept the same combinations, with the same results.

All combinations are in one source, one model each. hetucc names the lines of the models that it refuses; the one-device program runs once
for each of these. The programs of the other models print their results, which must be the same numbers.
"""
import itertools
import pathlib
import re

TYPES = ["F32", "BF16", "F64", "I32", "I64"]
# name: (an expression over a, b, c; of how many of them it varies the type)
CALLS = {
    "linear": ("ht_linear(a, b, HT_NONE)", 2), "bias": ("ht_linear(a, a, row(c, 4))", 3), "matmul": ("ht_matmul(a, b)", 2),
    "add": ("ht_add(a, b)", 2), "sub": ("ht_sub(a, b)", 2), "mul": ("ht_mul(a, b)", 2), "div": ("ht_div(a, b)", 2),
    "scale": ("ht_scale(a, 0.5f)", 1), "relu": ("ht_relu(a)", 1), "gelu": ("ht_gelu(a)", 1), "silu": ("ht_silu(a)", 1), "exp": ("ht_exp(a)", 1),
    "detach": ("ht_detach(a)", 1), "sum": ("ht_sum(a)", 1), "mean": ("ht_mean(a)", 1), "softmax": ("ht_softmax(a)", 1),
    "to_f32": ("ht_cast(a, HT_F32)", 1), "to_bf16": ("ht_cast(a, HT_BF16)", 1), "to_f64": ("ht_cast(a, HT_F64)", 1), "to_i32": ("ht_cast(a, HT_I32)", 1),
    "to_i64": ("ht_cast(a, HT_I64)", 1), "layer_norm": ("ht_layer_norm(a, row(b, 4), HT_NONE, 1e-5f)", 2), "rms_norm": ("ht_rms_norm(a, row(b, 4), 1e-5f)", 2),
    "l2_norm": ("ht_l2_norm(a, 1e-6f)", 1), "embedding": ("ht_embedding_at(a, b)", 2), "rope": ("ht_rope(ht_reshape(a, ht_shape(4, 2, 2)), 100)", 1),
    "positions": ("ht_rope_at(ht_reshape(a, ht_shape(4, 2, 2)), row(b, 4), 100, 1)", 2),
    "attention": ("ht_attention_stats(heads(a), heads(b), heads(a), HT_NONE, HT_NONE, true).y", 2),
    "segments": ("ht_attention_stats(heads(a), heads(a), heads(a), row(b, 4), row(b, 4), true).y", 2),
    "row_max": ("ht_row_max(a)", 1), "mass": ("ht_mass(a, row(b, 4), ht_cast(row(a, 4), HT_F32)).mass", 2),
    "peak_mass": ("ht_peak_mass(a, row(b, 4)).mass", 2),
    "nll": ("ht_nll(row(a, 4), row(a, 4), row(c, 4), row(b, 4))", 3), "reshape": ("ht_reshape(a, ht_shape(16))", 1),
    "transpose": ("ht_transpose(a, 0, 1)", 1), "slice": ("ht_slice(a, 0, 1, 2)", 1), "pad": ("ht_pad_at(a, 0, 1, 6)", 1),
    "concat": ("ht_concat(ht_list(a, b), 0)", 2), "dropout": ("ht_dropout(a, 0.5f)", 1), "iota": ("ht_iota(5, ht_dtype_of(a))", 1),
}

TOP = """#include <hetu/hetu.h>
#include <stdio.h>
#include <stdlib.h>

static ht_tensor in(const char *name, ht_dtype dtype)
{
    return ht_cast(ht_input(name, HT_F32, ht_shape(4, 4)), dtype);
}

static ht_tensor row(ht_tensor x, int n)
{
    return ht_reshape(ht_slice(x, 0, 1, 1), ht_shape(n));
}

static ht_tensor heads(ht_tensor x)
{
    return ht_reshape(x, ht_shape(4, 2, 2));
}

"""
MAIN = """
static void run(ht_program *program, int which)
{
    float a[16], b[16], c[16];
    double y[64] = {0};
    for (int i = 0; i < 16; i++) {
        a[i] = (float)(i * 5 % 7) / 2 + 0.25f;
        b[i] = (float)(i * 3 % 4);
        c[i] = (float)(i % 5) - 2;
    }
    ht_run(program, ht_feed("a", a), ht_feed("b", b), ht_feed("c", c));
    ht_fetch(program, "y", y);
    printf("%d:", which);
    for (int i = 0; i < 4; i++)
        printf(" %.3g", y[i]);
    printf("\\n");
}
"""


def combinations():
    for name, (call, count) in CALLS.items():
        for types in itertools.product(TYPES, repeat=count):
            yield f"{name}({', '.join(types)})", call, types + ("F32",) * (3 - count)


def source(chosen):
    """The text, and by line the combination whose call stands there."""
    text, lines = TOP, {}
    models = list(combinations())
    for k in chosen:
        _, call, types = models[k]
        names = [n for n in "abc" if re.search(rf"\b{n}\b", call)]
        text += f"static ht_tensor m{k}(void)\n{{\n    ht_tensor " + ", ".join(f'{n} = in("{n}", HT_{types["abc".index(n)]})' for n in names) + ";\n"
        for n in "abc":
            if n not in names:
                text += f'    ht_input("{n}", HT_F32, ht_shape(4, 4));\n'
        lines[text.count("\n") + 1] = k
        text += f"    ht_tensor y = {call};\n"
        text += '    return ht_output(ht_cast(y, HT_F64), "y");\n}\n\n'
    text += MAIN + "\nint main(int argc, char **argv)\n{\n    ht_session *session = ht_open(&argc, &argv);\n    int only = argc > 1 ? atoi(argv[1]) : -1;\n"
    for k in chosen:
        text += f"    if (only < 0 || only == {k})\n        run(ht_infer(session, m{k}), {k});\n"
    return text + "    return 0;\n}\n", lines


def hetucc_refuses(path, build, count):
    """Which models hetucc refuses; it shows some errors at a time. Then the program of the others, NULL when it does not compile for another reason, and the last errors."""
    refused = set()
    while True:
        text, lines = source([k for k in range(count) if k not in refused])
        path.write_text(text)
        program, errors = build(path)
        found = {lines[int(n)] for n in re.findall(r"^[^\n:]*:(\d+):\d+: error:", errors, flags=re.M) if int(n) in lines}
        if program or not found:
            return refused, program, errors
        refused |= found


def compare(path, build_cc, build_hetucc, run):
    """The disagreements, and how many combinations are accepted. build_cc(path) and build_hetucc(path) give a program or, of hetucc, the text of its errors; run(program, arguments)
    gives a process that has ended."""
    models = [name for name, *_ in combinations()]
    path.write_text(source(range(len(models)))[0])
    one, wrong, here, there = build_cc(path), [], {}, set()
    for k, name in enumerate(models):
        p = run(one, str(k))
        here[k] = p.stdout.strip()
        if p.returncode == 1 and re.search(r"ht_\w+: ", p.stderr):
            there.add(k)
        elif p.returncode:
            wrong.append(f"{name}: the one-device program ends with {p.returncode}: {p.stderr}")
    refused, program, errors = hetucc_refuses(path, build_hetucc, len(models))
    wrong += [f"{models[k]}: hetucc alone refuses it" for k in sorted(refused - there)]
    wrong += [f"{models[k]}: the one-device library alone refuses it" for k in sorted(there - refused)]
    found = {int(line.split(":")[0]): line for line in run(program).stdout.splitlines()} if program else {}
    good = [k for k in range(len(models)) if k not in refused | there]
    wrong += [f"{models[k]}: hetucc gives {found.get(k, errors[-500:])}, the one-device library {here[k]}" for k in good if found.get(k) != here[k]]
    return wrong, len(good)
