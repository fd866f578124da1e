// Files of phy_manager, written by tools/file_lists.py; paths are those of the repository.
rtl/mac/mac_pkg.sv
rtl/common/sync_bits.sv
rtl/mac/mdio_master.sv
rtl/mac/phy_manager.sv
