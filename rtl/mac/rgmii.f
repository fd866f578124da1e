// Files of rgmii, written by tools/file_lists.py; paths are those of the repository.
rtl/common/link_pkg.sv
rtl/mac/mac_pkg.sv
rtl/mac/bytes_to_symbols.sv
rtl/common/steady_bits.sv
rtl/common/sync_bits.sv
rtl/common/cdc_steady.sv
rtl/mac/symbols_to_bytes.sv
rtl/mac/rgmii.sv
