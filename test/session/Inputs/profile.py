"""profile.py FILE: the profile of profile.c in what a program said: no share above 100%, a lookup touches its rows and not the table, and a view touches nothing."""
import re
import sys

ROWS, WIDTH, WORDS, STEPS = 64, 64, 32768, 400
said = open(sys.argv[1]).read()
shares = [float(share) for share in re.findall(r"([\d.]+)%", said)]
assert shares and max(shares) <= 100 and "cached" not in said, said
rows = {line.split("  ")[0]: line for line in said.splitlines()}
calls, seconds, rate = (float(re.findall(r"\S+", rows["ht_embedding_at"][32:])[k]) for k in (0, 1, -2))
touched = 4 * (2 * ROWS * WIDTH + ROWS)
assert calls == STEPS and rate * (seconds - 6e-5) / calls < 2 * touched, (rows["ht_embedding_at"], touched, WORDS)
view = rows.get("ht_reshape")
assert not view or view.split()[-2:] == ["-", "-"], view
norm = rows["ht_layer_norm_stats"].split()
assert norm[-1].endswith("%") and norm[-2] != "-", norm
