"""Whether a file is what tools/manual/formats.md says of the JSON of --emit=cost: every key with a value of its type, and no other."""
import json
import sys

OPTIONAL = (float, int, type(None))
PLACE = {"file": str, "line": int, "column": int, "section": str, "value": str, "runs": int, "seconds": OPTIONAL}
OPERATOR = dict(PLACE, operator=str, product=bool, operations=int, bytes=int)
CONVERSION = dict(PLACE, conversion=str, reason=str, received=int)
KINDS = ("parameters", "states", "inputs", "gradients", "activations", "temporaries", "scratch", "gaps")
MEMORY = dict({kind: int for kind in KINDS}, peak=int, kept=int, limit=(int, type(None)))
ROLE = {"devices": [int], "class": (str, type(None)), "memory": MEMORY, "operations": int, "bytes": int, "received": int, "seconds": OPTIONAL, "operators": [OPERATOR], "conversions": [CONVERSION]}
MODEL = {"model": str, "kind": str, "source": str, "strategy": (str, type(None)), "devices": int, "microbatches": int, "roles": [ROLE]}
TOP = {"format": int, "models": [MODEL]}


def check(value, schema, path):
    if isinstance(schema, list):
        assert isinstance(value, list) and value, path
        for i, item in enumerate(value):
            check(item, schema[0], f"{path}[{i}]")
    elif isinstance(schema, dict):
        assert set(value) - {"scope"} == set(schema), (path, sorted(set(value) ^ set(schema)))
        for key in schema:
            check(value[key], schema[key], f"{path}.{key}")
    else:
        assert isinstance(value, schema), (path, value)


with open(sys.argv[1]) as file:
    top = json.load(file)
check(top, TOP, "")
for role in (role for model in top["models"] for role in model["roles"]):
    assert role["memory"]["peak"] == sum(role["memory"][kind] for kind in KINDS)
    assert role["operations"] == sum(row["operations"] for row in role["operators"])
