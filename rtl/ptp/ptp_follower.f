// Files of ptp_follower, written by tools/file_lists.py; paths are those of the repository.
rtl/ptp/ptp_pkg.sv
rtl/common/cdc_register.sv
rtl/common/sync_bits.sv
rtl/common/cdc_token.sv
rtl/common/cdc_handshake.sv
rtl/ptp/ptp_clock.sv
rtl/ptp/ptp_follower.sv
