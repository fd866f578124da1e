// File list of the cores and the example board; packages first.
rtl/common/link_pkg.sv
rtl/common/net_pkg.sv
rtl/mac/mac_pkg.sv
rtl/mac/code_8b10b_pkg.sv
rtl/fade/fade_pkg.sv
rtl/fade1/fade1_pkg.sv
rtl/fade10g/fade10g_pkg.sv
rtl/tcp/tcp_pkg.sv
rtl/udp/udp_pkg.sv
rtl/ptp/ptp_pkg.sv
rtl/ptp/ptp_program_pkg.sv
rtl/fadc/fadc_pkg.sv
rtl/boards/example/example_pkg.sv
rtl/axi/registers/fade_csr_pkg.sv
rtl/axi/registers/tcp_csr_pkg.sv
rtl/axi/registers/udp_csr_pkg.sv
rtl/axi/registers/fadc_csr_pkg.sv
rtl/axi/registers/ptp_csr_pkg.sv
+incdir+rtl
-y rtl/common
-y rtl/mac
-y rtl/fade
-y rtl/fade1
-y rtl/fade10g
-y rtl/tcp
-y rtl/ptp
-y rtl/udp
-y rtl/fadc
-y rtl/axi
-y rtl/axi/registers
-y rtl/boards/example
+libext+.sv
