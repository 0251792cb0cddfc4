#!/usr/bin/env python3
"""Compares hetu-simulate with closed forms, within 1e-9:  theory.py HETU_SIMULATE MODEL.c FOLDER

Let a stage's phases take f (forward) and b (backward), and t = f + b. With M micro-batches, S stages and V ranges a stage, a step takes

    1f1b, gpipe    (M + S - 1) t
    interleaved    M t + (S - 1) t / V, where S divides M

With unequal stages gpipe takes the sum of t + (M - 1) times the largest t, and so does 1f1b if the last stage is the largest. Otherwise
1f1b may take less, down to what its order of phases allows: that is computed here from the order alone. Messages of r seconds, sent beside
computing, make a step of gpipe longer by 2 (S - 1) r. A ring all-reduce of n devices takes 2 (n - 1) (latency + bytes / n / bandwidth).
"""
import json
import pathlib
import subprocess
import sys

SIMULATE, MODEL, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
WIDTH, RATE = 64, 1e9


def cluster(name, latency=1e-18, bandwidth=1e30, rate=RATE, count=64, hosts=None, uplinks=(), **more):
    device = {"arithmetic": 1e30, "products": {"f32": [[1, rate]]}}
    links = {"latency": latency, "bandwidth": bandwidth}
    path = FOLDER / f"{name}.cluster.json"
    path.write_text(json.dumps({"classes": {"a": {**device, **more}}, "devices": hosts or [{"class": "a", "host": "h", "count": count}],
                                "links": {"local": links if not hosts else {"latency": 1e-18, "bandwidth": 1e30}, "remote": links, "uplinks": list(uplinks)}}))
    return path


def simulate(name, lines, cluster_file, *options):
    strategy, trace = FOLDER / f"{name}.strategy", FOLDER / f"{name}.trace.json"
    strategy.write_text(f"strategy s\n{lines}\nend strategy\n")
    said = subprocess.run([SIMULATE, MODEL, f"--strategy={strategy}", f"--cluster={cluster_file}", "--json", f"--trace={trace}", *options], stdout=subprocess.PIPE, check=True)
    return json.loads(said.stdout)["models"][0], json.loads(trace.read_text())["traceEvents"]


def near(what, found, wanted, most=1e-9):
    print(f"{what}: {found:.12g}, {found / wanted - 1:+.1e}")
    assert abs(found - wanted) <= most * wanted, (what, found, wanted)


def stages(counts):
    return "\n".join(f"stage devices({s}) layers({sum(counts[:s])}-{sum(counts[:s + 1]) - 1})" for s in range(len(counts)))


def layer(rows):
    return 2 * rows * WIDTH * WIDTH / RATE


def chain(kind, counts, microbatches):
    """Seconds of a layer's forward part, and what is simulated."""
    lines = f"schedule {kind}\npipeline microbatches({microbatches}) rows(3)\n" + stages(counts)
    return lines, (f"-DLAYERS={sum(counts)}", f"-DROWS={3 * microbatches}")


def equal_stages(free):
    for kind in "1f1b", "gpipe":
        for count, microbatches in (1, 4), (4, 6), (7, 3):
            lines, options = chain(kind, [1] * count, microbatches)
            model, _ = simulate(f"{kind}.{count}", lines, free, *options)
            near(f"{kind}, {count} stages, {microbatches} micro-batches", model["steps"][0], (microbatches + count - 1) * 2 * layer(3))
            for actor in model["actors"]:
                near("idle", actor["idle"] + actor["exposed"], (count - 1) * 2 * layer(3)) if count > 1 else None


def by_order(counts, microbatches):
    """How often a layer's part a step of 1f1b takes: stage s of S has S - s forward parts in front of its first backward one, and then one of each in turn."""
    count, ends = len(counts), {}
    orders = []
    for s in range(count):
        ahead = min(count - s, microbatches)
        order = [("F", m) for m in range(ahead)]
        for m in range(microbatches):
            order += [("B", m)] + ([("F", m + ahead)] if m + ahead < microbatches else [])
        orders.append(order)
    at, free = [0] * count, [0] * count
    while len(ends) < 2 * count * microbatches:
        for s in range(count):
            while at[s] < len(orders[s]):
                part, m = orders[s][at[s]]
                needs = ("F", m, s - 1) if part == "F" and s else ("B", m, s + 1) if part == "B" and s < count - 1 else ("F", m, s) if part == "B" else None
                if needs and needs not in ends:
                    break
                free[s] = ends[part, m, s] = max(free[s], ends[needs] if needs else 0) + counts[s]
                at[s] += 1
    return max(ends.values())


def unequal_stages(free):
    for kind, counts, microbatches in ("gpipe", [1, 3, 2], 5), ("gpipe", [3, 1, 1], 6), ("1f1b", [1, 2, 1, 4], 8), ("1f1b", [1, 2], 3), ("1f1b", [1, 3, 2], 5), ("1f1b", [3, 1, 1, 2], 6):
        lines, options = chain(kind, counts, microbatches)
        model, _ = simulate("unequal", lines, free, *options)
        wanted = 2 * (sum(counts) + (microbatches - 1) * max(counts))
        if kind == "1f1b":
            ordered = by_order(counts, microbatches)
            assert ordered == wanted if counts[-1] == max(counts) else ordered < wanted, (ordered, wanted)
            wanted = ordered
        near(f"{kind}, stages of {counts}, {microbatches} micro-batches", model["steps"][0], wanted * layer(3))


def interleaved(free):
    for count, visits, microbatches in (2, 2, 4), (4, 2, 8), (3, 3, 6):
        ranges = [", ".join(str(v * count + s) for v in range(visits)) for s in range(count)]
        lines = f"pipeline microbatches({microbatches}) rows(3)\n" + "\n".join(f"stage devices({s}) layers({ranges[s]})" for s in range(count))
        model, _ = simulate("interleaved", lines, free, f"-DLAYERS={count * visits}", f"-DROWS={3 * microbatches}")
        near(f"interleaved, {count} stages of {visits}, {microbatches} micro-batches", model["steps"][0], (microbatches * visits + count - 1) * 2 * layer(3))


def messages():
    """Messages are half as long as a part; what is received is received while the micro-batch before is computed."""
    late = cluster("late", bandwidth=4 * 3 * WIDTH / (layer(3) / 2))
    for count, microbatches in (2, 4), (3, 8):
        lines, options = chain("gpipe", [1] * count, microbatches)
        model, _ = simulate("messages", lines, late, *options)
        near(f"gpipe, {count} stages, messages", model["steps"][0], ((microbatches + count - 1) * 2 + (count - 1)) * layer(3))


def rings():
    latency, bandwidth = 3e-6, 2e9
    slow = cluster("ring", latency=latency, bandwidth=bandwidth, rate=1e30)
    for count in 2, 3, 8:
        lines = f"split batch:dp\nstage devices(0-{count - 1}) mesh(dp:{count})"
        bytes_ = 4 * 960 * 1000
        model, events = simulate("ring", lines, slow, "-DSUMMED", "-DCOUNT=960000", f"-DROWS={count}", "--bucket=1")
        rounds = [event for event in events if event.get("cat") == "sums" and event["name"] == "all-reduce"]
        assert rounds and len(model["actors"]) == 1, (rounds, model["actors"])
        longest = max(event["dur"] for event in rounds) / 1e6
        near(f"all-reduce on {count}", longest, 2 * (count - 1) * (latency + bytes_ / count / bandwidth))


def slower(free):
    """A device that is slow all the time, and one that becomes it: one stage of M micro-batches."""
    events = FOLDER / "events.json"
    lines, options = chain("1f1b", [2], 4)
    for at, wanted in (0, 2.5), (2 * 2 * 2 * layer(3), 1 + 1.5 / 2):
        events.write_text(json.dumps({"events": [{"at": at, "devices": [0], "slowdown": 2.5}]}))
        model, _ = simulate("slower", lines, free, *options, f"--events={events}")
        near(f"a device slowed 2.5 times at {at:.3g}", model["steps"][0], wanted * 4 * 2 * 2 * layer(3))


def folded():
    """One device for all that do the same, and every device by itself: the same to the bit; at half the rates, twice the time."""
    text = "\n".join(f"pipeline microbatches(3) rows(4)\nstage devices({8 * p}-{8 * p + 3}) mesh(dp:4) layers(0-1)\nstage devices({8 * p + 4}-{8 * p + 7}) mesh(dp:4) layers(2-3)" for p in range(2))
    lines, options = "split batch:dp\n" + text, ("-DROWS=24",)
    one, two = (cluster(f"fold{k}", latency=3e-6 * k, bandwidth=1e9 / k, rate=RATE / k) for k in (1, 2))
    together, _ = simulate("folded", lines, one, *options)
    alone, _ = simulate("folded", lines, one, *options, "--each-device")
    halved, _ = simulate("folded", lines, two, *options)
    assert len(together["actors"]) == 2 and len(alone["actors"]) == 16, len(together["actors"])
    print("folded:", together["steps"][0], alone["steps"][0], halved["steps"][0])
    assert together["steps"] == alone["steps"]
    for actor in together["actors"]:
        for device in actor["devices"]:
            mine = next(other for other in alone["actors"] if device in other["devices"])
            assert all(abs(mine[key] - actor[key]) <= 1e-12 for key in ("computing", "exposed", "idle", "hidden")) and mine["memory"] == actor["memory"], (mine, actor)
    near("half the rates", halved["steps"][0], 2 * together["steps"][0], 1e-12)


def hosts_of(count, devices):
    return [{"class": "a", "host": f"h{h}", "count": devices} for h in range(count)]


def cards(count, bandwidth):
    return [{"of": f"h{h}", "bandwidth": bandwidth} for h in range(count)]


def shared_cards():
    """Sums over two hosts of d devices: each device has its part of the bytes; d parts pass one card."""
    bandwidth, bytes_ = 2e9, 4 * 960 * 1000
    for devices in 2, 4:
        lines = f"split batch:dp\nstage devices(0-{2 * devices - 1}) mesh(dp:{2 * devices})"
        for shared in False, True:
            here = cluster("cards", bandwidth=bandwidth, rate=1e30, hosts=hosts_of(2, devices), uplinks=cards(2, bandwidth) if shared else ())
            model, _ = simulate("cards", lines, here, "-DSUMMED", "-DCOUNT=960000", f"-DROWS={2 * devices}", "--bucket=1")
            near(f"all-reduce on 2 hosts of {devices}, {'shared cards' if shared else 'cards of their own'}", model["steps"][0], bytes_ / bandwidth / (1 if shared else devices), 1e-9)


def folded_cards():
    """The same to the bit when hosts share their cards, all behind one switch or behind two."""
    text = "\n".join(f"pipeline microbatches(3) rows(4)\nstage devices({8 * p}-{8 * p + 3}) mesh(dp:4) layers(0-1)\nstage devices({8 * p + 4}-{8 * p + 7}) mesh(dp:4) layers(2-3)" for p in range(4))
    lines, options, before = "split batch:dp\n" + text, ("-DROWS=48",), 0
    switches = [{"of": [f"h{h}" for h in range(8 * s, 8 * s + 8)], "bandwidth": 1e6} for s in range(2)]
    for what, uplinks in ("none", []), ("cards", cards(16, 1e9)), ("switches", cards(16, 1e9) + switches):
        here = cluster("shared", latency=3e-6, bandwidth=1e9, hosts=hosts_of(16, 2), uplinks=uplinks)
        together, _ = simulate("shared", lines, here, *options)
        alone, _ = simulate("shared", lines, here, *options, "--each-device")
        print(f"folded, {what}:", together["steps"][0], alone["steps"][0], len(together["actors"]))
        near("together and alone", together["steps"][0], alone["steps"][0], 1e-12)
        assert len(together["actors"]) < len(alone["actors"]) == 32 and together["steps"][0] > before, together
        before = together["steps"][0]


FREE = cluster("free")
equal_stages(FREE)
unequal_stages(FREE)
interleaved(FREE)
messages()
rings()
slower(FREE)
folded()
shared_cards()
folded_cards()
