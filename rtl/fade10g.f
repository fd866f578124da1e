// File list of the FADE-10G example boards; packages first.
rtl/mac/mac_pkg.sv
rtl/fade10g/fade10g_pkg.sv
+incdir+rtl
-y rtl/common
-y rtl/mac
-y rtl/fade10g
-y rtl/boards/example
+libext+.sv
