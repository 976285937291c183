"""Compares PyTorch modules that tools/torch_to_ir.py has exported with PyTorch.

    python tests/python/test_torch.py [--quick|--all] [--devices LIST]... [NAME...]

The modules are single ATen operators, lowerings that other compilers have got wrong, and small models. --quick (the default):
two dtypes; --all: every dtype, and more random calls and placements. Needs PyTorch: `tools/setup torch`.
"""
import argparse
import os
import shutil
import sys
import warnings

import oracle
import torch_command

try:
    import torch
except ImportError:
    torch = None

if torch is not None:
    import torch_cases
    import torch_models
    import torch_runs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="run only cases and models whose name contains NAME")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--devices", action="append", metavar="LIST", help="a list of devices; repeat for several (default: cpu and npu,cpu)")
    arguments = parser.parse_args()
    tally = oracle.Tally()
    torch_command.check_without_pytorch(tally)
    if torch is None:
        tally.skip("PyTorch models", f"no PyTorch in {sys.executable}: 'tools/setup torch' installs it")
        return tally.finish()
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    folder = oracle.build_folder("torch")
    torch_command.check_command(tally, folder)
    devices = arguments.devices or ["cpu", "npu,cpu"]
    torch_runs.run_cases(tally, folder, arguments.names, devices, arguments.all)
    torch_models.run_models(tally, folder, arguments.names, devices, arguments.all)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
