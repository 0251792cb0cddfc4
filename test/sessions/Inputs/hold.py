#!/usr/bin/env python3
"""hold.py SOCKET LOCK COPIES MEETING: takes the abstract socket SOCKET, a folder LOCK with a lock that is held, the folder COPIES and a pipe MEETING, and holds them until it is killed."""
import fcntl
import os
import signal
import socket
import sys

os.umask(0)
name, lock, copies, meeting = sys.argv[1:]
held = socket.socket(socket.AF_UNIX)
address = "\0" + name
held.bind(address + "\0" * (107 - len(name)))
plain = socket.socket(socket.AF_UNIX)
plain.bind(address)
os.mkdir(lock, 0o777)
file = open(lock + "/lock", "w")
fcntl.flock(file, fcntl.LOCK_EX)
os.mkdir(copies, 0o777)
os.mkfifo(meeting, 0o666)
print("held", flush=True)
signal.pause()
