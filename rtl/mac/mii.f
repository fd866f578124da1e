// Files of mii, written by tools/file_lists.py; paths are those of the repository.
rtl/common/link_pkg.sv
rtl/mac/mac_pkg.sv
rtl/mac/bytes_to_symbols.sv
rtl/mac/symbols_to_bytes.sv
rtl/mac/mii.sv
