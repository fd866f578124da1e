# SPDX-License-Identifier: Apache-2.0
#
# Bitstream of the KC705 by Vivado without a project: vivado -mode batch -source rtl/boards/kc705/build.tcl [-tclargs NAME=VALUE ...]
# NAME: a parameter of kc705.sv. The output goes to build/vivado/kc705.
set top [file normalize [file join [file dirname [info script]] ../../..]]
set out $top/build/vivado/kc705
file mkdir $out

set list [open $top/rtl/boards/kc705/kc705.f]
foreach line [split [read $list] "\n"] {
    if {[string match rtl/* $line]} { read_verilog -sv $top/$line }
}
close $list
read_xdc $top/rtl/boards/kc705/kc705.xdc

set generics {}
foreach setting $argv { lappend generics -generic $setting }
synth_design -top kc705 -part xc7k325tffg900-2 {*}$generics
# The crossings are named by cells, which are there after synthesis.
read_xdc $top/rtl/common/crossings.xdc
opt_design
place_design
phys_opt_design
route_design
report_timing_summary -file $out/timing.txt
report_utilization -file $out/utilization.txt
if {[get_property SLACK [get_timing_paths -max_paths 1]] < 0} { error "a clock is too slow; see $out/timing.txt" }
write_bitstream -force $out/kc705.bit
