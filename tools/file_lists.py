#!/usr/bin/env python3
"""File lists of the cores: beside the top of each, the files that it needs, packages first.

Usage: tools/file_lists.py            writes rtl/*/<core>.f
       tools/file_lists.py --check    says which are not as they should be
"""

import sys

from support.paths import TOP
from support.sources import files_of, modules

CORES = [
    "fade_core",
    "tcp_core",
    "udp_core",
    "fadc_core",
    "ptp_node",
    "ptp_follower",
    "gmii_mac",
    "xgmii_mac",
    "rgmii",
    "mii",
    "rmii",
    "phy_manager",
    "basex_pcs",
]
CORES += ["fade_axi", "tcp_axi", "udp_axi", "fadc_axi", "ptp_axi", "gmii_axi", "xgmii_axi", "example_board"]
# Boards whose tools read a list.
CORES += ["kc705", "de2_115"]


def main():
    files = modules()
    wrong = []
    for core in CORES:
        path = files[core].with_suffix(".f")
        text = f"// Files of {core}, written by tools/file_lists.py; paths are those of the repository.\n"
        text += "".join(f"{name}\n" for name in files_of(core, files))
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            wrong.append(str(path.relative_to(TOP)))
    if wrong:
        print(f"not as tools/file_lists.py writes them: {', '.join(wrong)}", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
