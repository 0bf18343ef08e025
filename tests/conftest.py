"""Settings of every test: no network, one torch thread, interrupts that arrive."""

import os
import signal
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

_alfworld = Path(__file__).parent.parent.parent / "shared" / "data" / "alfworld"
if _alfworld.is_dir():
    os.environ.setdefault("ALFWORLD_DATA", str(_alfworld))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so it is in what a shell starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
