// Files of gmii_axi, written by tools/file_lists.py; paths are those of the repository.
rtl/mac/mac_pkg.sv
rtl/common/link_pkg.sv
rtl/common/crc32.sv
rtl/mac/gmii_mac_rx.sv
rtl/mac/gmii_mac_tx.sv
rtl/mac/gmii_mac.sv
rtl/axi/gmii_axi.sv
