#!/usr/bin/env python3
"""The report's step with gradient reductions beside the backward pass:  gradients.py HETUCC HETU_SIMULATE MODEL.c FOLDER

Six layers, data parallel over two hosts of one device each. A device takes f for a layer's product, so 6 f forward and 11 f backward (the first layer needs no gradient of its
input); a weight's gradient is summed in r seconds. Slow links carry one sum after another from the time when the last layer's gradient is there, f into the backward pass; fast
ones leave the first layer's sum behind it: a step takes the larger of 17 f + r and 7 f + 6 r. hetu-simulate takes as long.

Two stages of three layers, each data parallel over two hosts of two devices: the first stage ends its backward pass after 17 f, as before; its sums begin 6 f behind those of the
second stage. Where each device has a card, a stage's three sums follow each other; where a host has one, the sums of both stages share it, and all six pass one after another.
A burst of a card lets so many seconds of sums pass at once, and is full again after as long without any.
"""
import json
import pathlib
import subprocess
import sys

HETUCC, SIMULATE, MODEL, FOLDER = sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
LAYERS, ROWS, WIDTH, RATE = 6, 64, 256, 1e9
PRODUCT = 2 * (ROWS / 2) * WIDTH * WIDTH / RATE
STRATEGY = FOLDER / "dp2.strategy"
STRATEGY.write_text("strategy dp2\nsplit batch:dp\nstage devices(0-1) mesh(dp:2)\nend strategy\n")


def steps(strategy, cluster):
    """Returns a step by the report, and by the simulator, as multiples of PRODUCT."""
    options = [f"--strategy={strategy}", f"--cluster={cluster}", MODEL]
    subprocess.run([HETUCC, *options, f"--report={FOLDER / 'report.json'}", "--emit=c", "-o", FOLDER], check=True)
    said = subprocess.run([SIMULATE, *options, "--json"], check=True, stdout=subprocess.PIPE).stdout
    return json.loads((FOLDER / "report.json").read_text())["models"][0]["length"] / PRODUCT, json.loads(said)["models"][0]["steps"][0] / PRODUCT


for sums in 8, 2, 0.5, 0.125:  # seconds of a sum as a multiple of a product
    link = {"latency": 1e-18, "bandwidth": 4 * WIDTH * WIDTH / (sums * PRODUCT)}
    cluster = FOLDER / "cluster.json"
    cluster.write_text(json.dumps({"classes": {"a": {"arithmetic": 1e30, "products": {"f32": [[1, RATE]]}}}, "devices": [{"class": "a", "host": host} for host in "ab"],
                                   "links": {"local": link, "remote": link}}))
    report, simulated = steps(STRATEGY, cluster)
    computing = LAYERS + 2 * LAYERS - 1
    wanted = max(computing + sums, LAYERS + 1 + LAYERS * sums)
    print(f"a sum takes {sums} products: report {report:.6f}, simulated {simulated:.6f}, wanted {wanted:g}")
    assert abs(report - wanted) <= 1e-5 * wanted and abs(simulated - wanted) <= 1e-5 * wanted

STAGES = FOLDER / "stages.strategy"
STAGES.write_text("""strategy stages
  split batch:dp
  pipeline microbatches(1) rows(64)
    stage devices(0, 2) mesh(dp:2) layers(0-2)
    stage devices(1, 3) mesh(dp:2) layers(3-5)
end strategy
""")
for sums, shared, burst in (8, False, 0), (8, True, 0), (3, True, 0), (0.25, False, 0), (0.25, True, 0), (8, True, 0.5), (8, True, 3), (8, True, 12), (3, True, 1), (0.25, True, 1 / 8), (0.25, True, 0.5):
    rate = 4 * WIDTH * WIDTH / (sums * PRODUCT)
    path = FOLDER / "cards.json"
    cards = [{"of": host, "bandwidth": rate, **({"burst": burst * rate * PRODUCT} if burst else {})} for host in "ab"] if shared else []
    path.write_text(json.dumps({"classes": {"a": {"arithmetic": 1e30, "products": {"f32": [[1, RATE]]}}}, "devices": [{"class": "a", "host": host, "count": 2} for host in "ab"],
                                "links": {"local": {"latency": 1e-18, "bandwidth": 1e30}, "remote": {"latency": 1e-18, "bandwidth": rate}, "uplinks": cards}}))
    report, simulated = steps(STAGES, path)
    # the second stage's sums begin after 7 f, the first stage's after 13 f; the last one's operand is there after 17 f
    last = 17 + max(sums - burst, 0)
    wanted = max(7 + 6 * sums - burst, last) if shared else max(13 + 3 * sums, last)
    print(f"two stages, {'a card a host' if shared else 'a card a device'}, a burst of {burst:g}, a sum takes {sums} products: report {report:.6f}, simulated {simulated:.6f}, wanted {wanted:g}")
    assert abs(report - wanted) <= 1e-5 * wanted and abs(simulated - wanted) <= 1e-5 * wanted
print("gradients: all right")
