// Files of basex_pcs, written by tools/file_lists.py; paths are those of the repository.
rtl/mac/mac_pkg.sv
rtl/mac/code_8b10b_pkg.sv
rtl/common/link_pkg.sv
rtl/mac/basex_negotiation.sv
rtl/mac/basex_rx.sv
rtl/mac/basex_tx.sv
rtl/common/steady_bits.sv
rtl/common/sync_bits.sv
rtl/common/cdc_steady.sv
rtl/mac/basex_pcs.sv
