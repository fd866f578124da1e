; SPDX-License-Identifier: Apache-2.0
;
; Names of the program of PTP (ptp.asm): constants, registers, parameters, what is outside, fields of messages, memory.

constant SECOND 1000000000
constant STEP 1000000              ; ns: beyond, the clock is stepped
constant LOCKED 1000               ; ns
constant SETTLED 16                ; offsets in a row that are less
constant RATE_MAX 1 << 26          ; of 2^-32 ns a clock
constant TIMEOUT 3                 ; intervals of Announce without one: the master is gone (9.2.6.11)
constant WINDOW 4                  ; intervals of Announce in which the second one must come (9.3.2.4.4)

constant ROLE_OFF 0
constant ROLE_SLAVE 1
constant ROLE_MASTER 2
constant ROLE_BEST 3

constant DISABLED 3
constant LISTENING 4
constant MASTER 6
constant UNCALIBRATED 8
constant SLAVE 9

constant PEER 2                    ; delay mechanism; 1 is end to end

; ---- registers of the slow control, from 0x80000010 on ---------------------------------------
reg role
reg locked
reg offset
reg delay
reg rate
reg seconds
reg ns
reg clocks
reg log
reg state
reg domain
reg transport                      ; 0 UDP, 1 Ethernet
reg mechanism
reg priorities                     ; {priority1, priority2}
reg utc                            ; {source of time, flags}, offset to UTC: of this clock
reg quality                        ; {class, accuracy, variance}
reg utc_used                       ; of the master
reg steps                          ; from the grandmaster

; ---- parameters of the core ------------------------------------------------------------------
parameter p_sync_clocks 2
parameter p_sync_log 2
parameter p_hold 3                 ; ns that a step takes
parameter p_arrival_lag 3          ; ns from a frame's arrival to its stamp
parameter p_departure_lead 3       ; ns from a frame's departure to its stamp, over UDP
parameter p_departure_lead_l2 3    ; the same, over Ethernet
parameter p_clocks_log 1           ; 2^n clocks are a second, nearly
parameter p_transport 2

; ---- outside of the memory -------------------------------------------------------------------
at rx 0x200 64
at tx 0x280 64
at window 0x380 2                  ; the register that is asked for
; read
at io_status 0x300 1
constant REGISTER 1
constant WRITTEN 2
constant PENDING 4
constant SENDING 8
at io_ticks 0x301 1                ; of 16 clocks
at io_random 0x302 1
at io_length 0x303 1               ; bytes of the message
at io_arrival 0x304 3              ; seconds' lowest word, nanoseconds
at io_departure 0x307 3
at io_register 0x30a 1
at io_value 0x30b 2
at io_role 0x30d 1                 ; at reset
at io_ip 0x30e 2
at io_now 0x310 5
at io_identity 0x315 4             ; of the clock
; written
at io_done 0x300 1                 ; the register's answer: 1 is an error
at io_answer 0x301 2
at io_next 0x303 1                 ; the message is taken
at io_send 0x304 1                 ; bytes and
constant EVENT 0x100
constant TO_PEER 0x200
at io_rate 0x305 2
at io_hold 0x307 1
at io_events 0x308 1
constant OFFSET_FOUND 1
constant MALFORMED 2
constant IGNORED 4
at io_mode 0x309 1
constant OPEN 1
constant LAYER2 2
constant IS_LOCKED 4
at io_offset 0x30a 2
at io_delay 0x30c 2

; ---- messages --------------------------------------------------------------------------------
at rx_kind rx[0] 1
at rx_size rx[1] 1
at rx_domain rx[2] 1
at rx_flags rx[3] 1
at rx_correction rx[4:3] 3
at rx_correction_all rx[4:4] 4
at rx_source rx[10:5] 5
at rx_sequence rx[15] 1
at rx_log rx[16] 1
at rx_seconds rx[17:3] 3
at rx_ns rx[20:2] 2
at rx_requesting rx[22:5] 5
at tx_correction tx[4:4] 4
at tx_sequence tx[15] 1
at tx_seconds tx[17:3] 3
at tx_ns tx[20:2] 2
at tx_requesting tx[22:5] 5

constant KIND_SYNC 0x0002          ; with the version
constant KIND_DELAY_REQ 0x0102
constant KIND_PDELAY_REQ 0x0202
constant KIND_PDELAY_RESP 0x0302
constant KIND_FOLLOW_UP 0x0802
constant KIND_DELAY_RESP 0x0902
constant KIND_PDELAY_FOLLOW 0x0a02
constant KIND_ANNOUNCE 0x0b02
constant KIND_MANAGEMENT 0x0d02
constant TWO_STEP 0x0200
constant ALTERNATE 0x0100

; ---- memory ----------------------------------------------------------------------------------
var work 4
var more 4
var counter 1
var byte 1
var kind 1
var ticks 1
var elapsed 2
var now 2                          ; ticks
var sync_ticks 2                   ; an interval of Sync
var sync_at 2
var announce_at 2
var request_at 2                   ; Delay_Req or Pdelay_Req
var parent_until 2
var candidate_until 2
var log_sync 1                     ; as messages carry it, in the low byte
var log_announce 1
var drops 1                        ; what waits came before the clock was set
var domain_byte 1                  ; in the high byte
var identity 5                     ; of the port
var mode 1
var departure_lead 3

var own 14                         ; data sets
var parent 14
var candidate 14
var heard 14
var before 14
at parent_source parent[9:5] 5
at candidate_source candidate[9:5] 5
at heard_source heard[9:5] 5
var qualified 1
var candidate_utc 2
var heard_utc 2

var t 6                            ; a time
at t_seconds t[0:3] 3
at t_ns t[3:3] 3
var stamp 3
var lag 3
var from 6                         ; another
at from_seconds from[0:3] 3
at from_ns from[3:3] 3
var apart 3                        ; t - from, ns
var seconds_apart 3
var far 1

var sync_time 6
var sync_sequence 1
var sync_correction 3
var sync_interval 1
var awaits_follow 1
var there 3
var have_there 1
var request_time 6
var request_sequence 1
var request_log 1
var awaits_response 1
var response_time 6                ; Pdelay_Resp: its arrival
var response_from 6                ; and when its request had come
var response_correction 3
var awaits_pdelay 1
var back 3
var has_delay 1
var mean_delay 4                   ; 2^-16 ns
var delay_ns 3
var offset_ns 3
var offset_all 4
constant STEPPED 1
constant STEPPED_AGAIN 2
var started 1
var settled 1
var gain 3
var integral 3
var shift 1
var rate_wanted 3

var my_sync 1
var my_announce 1
var out_kind 1
var out_size 1
var out_flags 1
var out_control 1                  ; and the interval's logarithm
var action 1
var size 1
var shifted 8
