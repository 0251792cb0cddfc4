#!/usr/bin/env python3
"""Says garbage to every socket that listens on the loopback, or nothing, until it is killed."""
import pathlib
import socket

kept = []
while True:
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        port = int(words[1].split(":")[1], 16)
        if words[3] != "0A" or len(kept) > 500:
            continue
        try:
            guest = socket.create_connection(("127.0.0.1", port), timeout=0.05)
            if port % 2 or len(kept) % 2:
                guest.sendall(bytes(range(256)) * 4)
            kept.append(guest)
        except OSError:
            pass
