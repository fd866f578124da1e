# SPDX-License-Identifier: Apache-2.0
#
# Timing of what goes from one clock to another, for Vivado. Clocks have constraints of their own, and are unrelated; every
# crossing lies in a module of rtl/common with a register of the names below (tests/support/crossings.py holds the cores to it).
# The limit is a period of the fastest clock, 6.4 ns.

# sync_bits: of a Gray code one bit changes at a time, so all must arrive within a period.
set_max_delay -datapath_only -from [all_clocks] -to [get_cells -hierarchical -filter {NAME =~ *sync_first_reg*}] 6.400

# sync_reset: may rise at any time, and falls with the clock.
set_false_path -to [get_pins -hierarchical -filter {NAME =~ *sync_reset_stages_reg*/PRE}]

# cdc_register: stands still when it is read, two clocks after what tells so.
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *cdc_held_reg*}] 6.400

# async_fifo: a word is written two clocks or more before it is read.
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *cdc_memory_reg*}] 6.400
