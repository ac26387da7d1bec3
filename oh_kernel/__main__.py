"""How is the kernel process started?  `python -P -m oh_kernel -f CONNECTION_FILE`

`-P` keeps the working folder off `sys.path` while Python itself starts, so that a file `types.py`
in it cannot end the kernel before it began. For a start without `-P` the same is done here, before
any other import. The kernel puts the folder back, behind the standard library, before the first
cell.
"""

import sys


def _leave_working_folder_out() -> None:
    import os  # always imported already, so that nothing can take its place

    sys.path[:] = [entry for entry in sys.path if entry not in ("", os.getcwd())]  # noqa: PTH109


if __name__ == "__main__":
    _leave_working_folder_out()

    from oh_kernel.kernel.kernel import OpenHandsKernel, OpenHandsKernelApp

    OpenHandsKernelApp.launch_instance(kernel_class=OpenHandsKernel)
