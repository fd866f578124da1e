# Pins of de2_115.sv (Terasic, DE2-115 User Manual, chapters on the clocks, the LEDs and Gigabit Ethernet).
foreach {port pin standard} {
    clk50           Y2  "3.3-V LVTTL"
    led[0]          E21 "2.5 V"
    led[1]          E22 "2.5 V"
    phy_enable      C19 "2.5 V"
    mdc             C20 "2.5 V"
    mdio            B21 "2.5 V"
    rgmii_txc       A17 "2.5 V"
    rgmii_tx_ctl    A18 "2.5 V"
    rgmii_txd[0]    C18 "2.5 V"
    rgmii_txd[1]    D19 "2.5 V"
    rgmii_txd[2]    A19 "2.5 V"
    rgmii_txd[3]    B19 "2.5 V"
    rgmii_rxc       A15 "2.5 V"
    rgmii_rx_ctl    C17 "2.5 V"
    rgmii_rxd[0]    C16 "2.5 V"
    rgmii_rxd[1]    D16 "2.5 V"
    rgmii_rxd[2]    D17 "2.5 V"
    rgmii_rxd[3]    C15 "2.5 V"
} {
    set_location_assignment PIN_$pin -to $port
    set_instance_assignment -name IO_STANDARD $standard -to $port
}
