# SPDX-License-Identifier: Apache-2.0
#
# Timing of what goes from one clock to another, for the Timing Analyzer of Quartus. Clocks have constraints of their own; every
# crossing lies in a module of rtl/common with a register of the names below (tests/support/crossings.py holds the cores to it).
# The limit is a period of the fastest clock, 6.4 ns.

# sync_bits: of a Gray code one bit changes at a time, so all must arrive within a period.
set_false_path -to [get_registers {*sync_first*}]
set_max_skew -to [get_registers {*sync_first*}] 6.400

# sync_reset: may rise at any time, and falls with the clock.
set_false_path -to [get_pins -compatibility_mode {*sync_reset_stages*|clrn}]
set_false_path -to [get_pins -compatibility_mode {*sync_reset_stages*|prn}]

# cdc_register: stands still when it is read, two clocks after what tells so.
set_max_delay -from [get_registers {*cdc_held*}] 6.400
set_min_delay -from [get_registers {*cdc_held*}] -100.000

# async_fifo: a word is written two clocks or more before it is read.
set_max_delay -from [get_registers {*cdc_memory*}] 6.400
set_min_delay -from [get_registers {*cdc_memory*}] -100.000
