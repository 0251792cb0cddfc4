"""Makes models, clusters and bounds for planners from a seed: layers of products or of attention with meaningless names, and devices of one or several classes."""
import random

WORDS = "amber birch cedar delta ember flint grove heron iris jade kelp larch moss nettle ochre pine quartz reed sage thorn".split()

MLP = """
static ht_tensor block(ht_tensor x)
{{
    ht_tensor up = ht_param(ht_shape(HIDDEN, WIDTH), ht_normal(0.02f), "up");
    ht_tensor down = ht_param(ht_shape(WIDTH, HIDDEN), ht_normal(0.02f), "down");
#pragma hspmd dims(up: {inner}, _)
#pragma hspmd dims(down: _, {inner})
    return ht_add(x, ht_linear(ht_gelu(ht_linear(x, up, HT_NONE)), down, HT_NONE));
}}
"""

ATTENTION = """
static ht_tensor project(ht_tensor x, const char *name)
{{
    ht_tensor w = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.02f), name);
#pragma hspmd dims(w: ({heads} _), _)
    return ht_reshape(ht_linear(x, w, HT_NONE), ht_shape(ht_extent(x, 0), PLACES, HEADS, WIDTH / HEADS));
}}

static ht_tensor mlp(ht_tensor x)
{{
    ht_tensor up = ht_param(ht_shape(HIDDEN, WIDTH), ht_normal(0.02f), "up");
    ht_tensor down = ht_param(ht_shape(WIDTH, HIDDEN), ht_normal(0.02f), "down");
#pragma hspmd dims(up: {inner}, _)
#pragma hspmd dims(down: _, {inner})
    return ht_linear(ht_silu(ht_linear(x, up, HT_NONE)), down, HT_NONE);
}}

static ht_tensor block(ht_tensor x)
{{
    ht_tensor y = ht_attention(project(x, "q"), project(x, "k"), project(x, "v"), HT_NONE, true);
    ht_tensor back = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.02f), "o");
#pragma hspmd dims(y: {rows}, {places}, {heads})
#pragma hspmd dims(back: _, ({heads} _))
    x = ht_add(x, ht_linear(ht_reshape(y, ht_shape(ht_extent(x, 0), PLACES, WIDTH)), back, HT_NONE));
    return ht_add(x, mlp(x));
}}
"""

REST = """
static ht_tensor loss(void)
{{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, {places_extent}WIDTH));
#pragma hspmd dims(x: {rows}{places_name})
    for (int l = 0; l < LAYERS; l++) {{
        ht_scope("h%d", l);
{layer}
        x = block(x);
    }}
    return ht_mean(ht_mul(x, x));
}}

int main(int argc, char **argv)
{{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 1e-4f));
    static float x[ROWS * PLACES * WIDTH];
    for (int i = 0; i < ROWS * PLACES * WIDTH; i++)
        x[i] = (float)(i * 7 % 13 - 6) / 6;
    for (int step = 0; step < 2; step++)
        printf("loss %.6f\\n", ht_step(program, ht_feed("x", x)));
    return 0;
}}
"""


def model(seed, scale=1):
    """C source, and its sizes. Products of `scale` times the width."""
    draw = random.Random(seed)
    inner, heads, rows, places = draw.sample(WORDS, 4)
    attention = draw.random() < 0.5
    sizes = {"ROWS": draw.choice([4, 6, 8, 12]), "LAYERS": draw.choice([1, 2, 3, 4, 5]), "HEADS": draw.choice([2, 3, 4, 6]), "PLACES": draw.choice([4, 6, 16]) if attention else 1}
    sizes["WIDTH"] = scale * sizes["HEADS"] * draw.choice([8, 12, 16])
    sizes["HIDDEN"] = sizes["WIDTH"] * draw.choice([2, 3, 4])
    layered = draw.random() < 0.85
    words = {"inner": inner, "heads": heads, "rows": rows, "places": places, "layer": "#pragma hspmd layer(l)" if layered else "",
             "places_extent": "PLACES, " if attention else "", "places_name": f", {places}, _" if attention else ", _"}
    text = "#include <hetu/hetu.h>\n#include <stdio.h>\n\nenum { " + ", ".join(f"{key} = {value}" for key, value in sizes.items()) + " };\n"
    text += (ATTENTION if attention else MLP).format(**words) + REST.format(**words)
    return text, {**sizes, "layered": layered, "attention": attention, "names": words}


def cluster(seed, most=8):
    """A cluster of up to `most` devices, of one to three classes."""
    draw = random.Random(1000 + seed)
    classes, devices, left = {}, [], draw.choice([2, 3, 4, 6, most])
    for name in ["a", "b", "c"][:draw.choice([1, 1, 2, 2, 3])]:
        count = min(left, draw.choice([1, 2, 4])) if name != "a" else (left + 1) // 2
        if not count:
            break
        left -= count
        speed = draw.choice([1, 2, 3, 5])
        classes[name] = {"start": 2e-6, "arithmetic": speed * 2e11, "memory_bandwidth": speed * 2e10, "products": {"f32": [[1e5, speed * 2e11], [1e9, speed * 1e12]]}}
        hosts = draw.choice([1, 1, 2]) if count % 2 == 0 else 1
        devices += [{"class": name, "host": f"{name}{h}", "count": count // hosts} for h in range(hosts)]
    links = {"local": {"latency": 2e-6, "bandwidth": draw.choice([5e9, 5e10])}, "remote": {"latency": 1e-5, "bandwidth": draw.choice([1e9, 5e9])}}
    return {"classes": classes, "devices": devices, "links": links}


def device_classes(held):
    return [entry["class"] for entry in held["devices"] for _ in range(entry["count"])]
