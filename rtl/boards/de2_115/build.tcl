# SPDX-License-Identifier: Apache-2.0
#
# Bitstream of the DE2-115 by Quartus Prime: quartus_sh -t rtl/boards/de2_115/build.tcl [NAME=VALUE ...]
# NAME: a parameter of de2_115.sv. The output goes to build/quartus/de2_115.
package require ::quartus::project
package require ::quartus::flow
set top [file normalize [file join [file dirname [info script]] ../../..]]
set board $top/rtl/boards/de2_115
file mkdir $top/build/quartus/de2_115
cd $top/build/quartus/de2_115

project_new -overwrite de2_115
set_global_assignment -name FAMILY "Cyclone IV E"
set_global_assignment -name DEVICE EP4CE115F29C7
set_global_assignment -name TOP_LEVEL_ENTITY de2_115
set_global_assignment -name NUM_PARALLEL_PROCESSORS ALL
set_global_assignment -name RESERVE_ALL_UNUSED_PINS "AS INPUT TRI-STATED"
set list [open $board/de2_115.f]
foreach line [split [read $list] "\n"] {
    if {[string match rtl/* $line]} { set_global_assignment -name SYSTEMVERILOG_FILE $top/$line }
}
close $list
set_global_assignment -name SDC_FILE $board/de2_115.sdc
set_global_assignment -name SDC_FILE $top/rtl/common/crossings.sdc
foreach setting $quartus(args) {
    lassign [split $setting =] name value
    set_parameter -name $name $value
}
source $board/pins.tcl
execute_flow -compile
project_close
