// Files of xgmii_axi, written by tools/file_lists.py; paths are those of the repository.
rtl/common/link_pkg.sv
rtl/mac/mac_pkg.sv
rtl/common/cdc_register.sv
rtl/common/sync_bits.sv
rtl/common/cdc_token.sv
rtl/common/cdc_handshake.sv
rtl/mac/mac_pause.sv
rtl/common/crc32.sv
rtl/mac/xgmii_mac_rx.sv
rtl/mac/xgmii_mac_tx.sv
rtl/mac/xgmii_mac.sv
rtl/axi/xgmii_axi.sv
