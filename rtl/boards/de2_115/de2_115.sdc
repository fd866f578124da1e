# Clocks of de2_115.sv. RGMII: the PHY sends its clock 2 ns late, and its data within 0.5 ns of the edges (RGMII 2.0, 3.3); both
# edges count.
create_clock -name clk50 -period 20.000 [get_ports clk50]
create_clock -name rgmii_rxc -period 8.000 [get_ports rgmii_rxc]
create_clock -name phy_rx -period 8.000 -waveform {6.000 10.000}
derive_pll_clocks
derive_clock_uncertainty
set_input_delay -clock phy_rx -max 0.500 [get_ports {rgmii_rxd[*] rgmii_rx_ctl}]
set_input_delay -clock phy_rx -min -0.500 [get_ports {rgmii_rxd[*] rgmii_rx_ctl}]
set_input_delay -clock phy_rx -clock_fall -max 0.500 -add_delay [get_ports {rgmii_rxd[*] rgmii_rx_ctl}]
set_input_delay -clock phy_rx -clock_fall -min -0.500 -add_delay [get_ports {rgmii_rxd[*] rgmii_rx_ctl}]
# Data of an edge are taken by the same edge of the late clock, and by no other.
set_false_path -setup -rise_from [get_clocks phy_rx] -fall_to [get_clocks rgmii_rxc]
set_false_path -setup -fall_from [get_clocks phy_rx] -rise_to [get_clocks rgmii_rxc]
set_false_path -hold -rise_from [get_clocks phy_rx] -rise_to [get_clocks rgmii_rxc]
set_false_path -hold -fall_from [get_clocks phy_rx] -fall_to [get_clocks rgmii_rxc]
