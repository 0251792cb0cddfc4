"""Holds as many silent connections to a port of this machine as it lets in, and comes again for each that is closed."""
import contextlib
import socket
import sys
import time

held = []
while True:
    with contextlib.suppress(OSError):
        held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=0.2))
        held[-1].setblocking(False)
    if len(held) >= 400:
        for stranger in held[:100]:
            stranger.close()
        del held[:100]
    time.sleep(0.001)
