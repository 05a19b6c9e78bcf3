"""What PyTorch takes to save and load as many bytes: lines "NAME SECONDS". usage: torch_save.py FOLDER BYTES"""
import os
import shutil
import sys
import time

import torch
import torch.distributed.checkpoint as dcp


def timed(name, body):
    begin = time.perf_counter()
    body()
    print(name, time.perf_counter() - begin)


def forget(path):
    files = [path] if os.path.isfile(path) else [os.path.join(path, name) for name in os.listdir(path)]
    for file in files:
        with open(file, "rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def save(tensors, path):
    with open(path, "wb") as file:
        torch.save(tensors, file)
        file.flush()
        os.fsync(file.fileno())


folder, size = sys.argv[1], float(sys.argv[2])
count = 36
tensors = {f"tensor_{i}": torch.zeros(int(size / 4 / count)) for i in range(count)}
whole, parts = os.path.join(folder, "torch.pt"), os.path.join(folder, "dcp")
timed("torch.save+fsync", lambda: save(tensors, whole))
forget(whole)
timed("torch.load", lambda: torch.load(whole, weights_only=True))
shutil.rmtree(parts, ignore_errors=True)
timed("dcp.save", lambda: dcp.save(tensors, checkpoint_id=parts, no_dist=True))
forget(parts)
timed("dcp.load", lambda: dcp.load(tensors, checkpoint_id=parts, no_dist=True))
os.remove(whole)
shutil.rmtree(parts)
