#!/usr/bin/env python3
"""Starts the ranks of a program without MPI, as other launchers do; takes the place of mpirun.

usage: without_mpi.py -np N PROGRAM [ARGUMENT ...]
"""
import os
import subprocess
import sys
import tempfile

count, command = int(sys.argv[2]), sys.argv[3:]
with tempfile.TemporaryDirectory() as folder:
    meet = {"HETU_RENDEZVOUS": folder, "HETU_SIZE": str(count), "OMP_NUM_THREADS": "1"}
    ranks = [subprocess.Popen(command, env=os.environ | meet | {"HETU_RANK": str(rank)}) for rank in range(count)]
    sys.exit(max(rank.wait() for rank in ranks))
