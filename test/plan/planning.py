"""Functions for the tests of each kind of plan: plans, their certified bounds, and refusals."""
import copy

from planner import answer as plan
from planner import near, run


def same_plan(kind, q):
    """Twice the same input, twice the same bytes."""
    assert run(kind, q)[1] == run(kind, q)[1]


def ratio(kind, name, q, score, most, *options):
    """Checks a plan: its own time is its score, and that is between the certified bound and `most` times it. The score."""
    p = plan(kind, q, *options)
    value, bound = score(q, p), plan(kind, q, "--certify")["bound"]
    print(f"{kind} {name}: {value:.3f} ms, {value / bound:.4f} of the bound", flush=True)
    assert near(value, p["milliseconds"]), (name, value, p["milliseconds"])
    assert bound * (1 - 1e-9) <= value <= most * bound, (name, value, bound)
    return value


def place(q, path):
    """The container and the key that a path of keys ends with."""
    for key in path[:-1]:
        q = q[key]
    return q, path[-1]


def refused(kind, q, path, value, line):
    """With `value` at `path` (None: nothing there), the planner prints exactly this line and exits with status 1."""
    q = copy.deepcopy(q)
    container, key = place(q, path)
    if value is None:
        del container[key]
    else:
        container[key] = value
    for options in [], ["--certify"]:
        status, out, errors, _ = run(kind, q, *options)
        assert status == 1 and not out, (status, out)
        assert errors.endswith(f"input.json: {line}\n") and errors.count("\n") == 1, errors
