"""The engine on a GPU; where there is none, on a stand-in: torch's own CUDA path, with the CPU's kernels underneath.

- `device/` is the stand-in, in C++; `library.py` builds and loads it, `cuda.py` puts it behind `torch.cuda`.
- The tests here are like any others, but each runs in a child process that has loaded the stand-in (`child.py`): it
  has to be there before torch. `conftest.py` hands them over. Where torch has a GPU they run on that one, without a
  child, and those marked `stand_in` are skipped.
- `counting.py` counts the kernels that a piece of code launches, and the moments in which the host waits.

What it shows: device mix-ups, waits, launches, graphs that read or write what has moved, what a capture does not
execute, copies that nobody waited for, memory that is short. What it does not: speed, races between kernels, CUDA's
own rounding, attention's fused kernels, NCCL.
"""
