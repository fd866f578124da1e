; SPDX-License-Identifier: Apache-2.0
;
; The program of PTP: an ordinary clock (IEEE 1588-2008), for ptp_machine. tools/ptp_assemble.py translates it, and
; tells what a line can be.
;
; Nanoseconds and seconds are signed numbers of 3 words; a time is 3 words of seconds and 3 of nanoseconds, the first of which
; is zero. A clock's data set, for the comparison of 9.3.4, is that part of an Announce which decides, in its order, and
; who sent it: of two, the lower number is the better clock.

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

; ---- begin -----------------------------------------------------------------------------------
    mov role[0], #0
    mov role[1], io_role
    mov clocks, p_sync_clocks
    mov log, p_sync_log
    mov domain, #0
    mov transport, p_transport
    mov mechanism, #1
    mov priorities, #0x8080
    mov quality, #0xf8feffff
    mov utc, #0xa0000000                   ; an oscillator of its own
    mov started, #0
    mov drops, #0
    mov now, #0
    mov elapsed, #0
    mov ticks, io_ticks
    mov my_sync, #0
    mov my_announce, #0
    mov request_sequence, #0
    mov from, #0
    call restart

main:
    mov elapsed[1], io_ticks
    sub elapsed[1], ticks
    add ticks, elapsed[1]
    add now, elapsed
    tst io_status, #REGISTER
    jz  no_register
    call register
no_register:
    tst io_status, #PENDING
    jz  no_message
    call receive
    mov io_next, #0
    cmp drops, #0
    jz  no_message
    mov drops, #0
drop:
    tst io_status, #PENDING
    jz  no_message
    mov io_events, #IGNORED
    mov io_next, #0
    jmp drop
no_message:
    cmp state[1], #DISABLED
    jz  main
    cmp mechanism[1], #PEER
    jz  request_due
    cmp state[1], #MASTER
    jz  is_master
    tst have_there, #1
    jz  is_slave
request_due:
    mov work[0:2], now
    sub work[0:2], request_at
    jn  no_request
    call request
no_request:
    cmp state[1], #MASTER
    jnz is_slave

is_master:
    mov work[0:2], now
    sub work[0:2], sync_at
    jn  no_sync
    add sync_at, sync_ticks
    call send_sync
    ; A master's time counts once a better one would have been heard.
    tst locked[1], #1
    jnz no_sync
    add settled, #1
    cmp settled, #SETTLED
    jnc no_sync
    mov locked[1], #1
    add mode, #IS_LOCKED
    mov io_mode, mode
no_sync:
    mov work[0:2], now
    sub work[0:2], announce_at
    jn  main
    add announce_at, sync_ticks
    add announce_at, sync_ticks
    call send_announce
    jmp main

is_slave:
    mov work[0:2], now
    sub work[0:2], parent_until
    jn  main
    call master_gone
    jmp main

; ---- slow control ----------------------------------------------------------------------------
routine register
    mov counter, io_register
    tst io_status, #WRITTEN
    jnz write
    cmp counter, #SECONDS_AT
    jnz answer
    ; The seconds are those of the nanoseconds that are read next.
reread:
    mov more[0:3], io_now[1:3]
    mov ns, io_now[3:2]
    mov work[0:3], io_now[1:3]
    cmp work[0:3], more[0:3]
    jnz reread
    mov seconds, work[0:2]
answer:
    cmp counter, #REGISTERS
    jc  wrong
    mov io_answer, window
    mov io_done, #0
    ret
wrong:
    mov io_done, #1
    ret
write:
    cmp counter, #SECONDS_AT
    jz  set_time
    mov work[0:2], io_value
    cmp counter, #0
    jz  write_role
    cmp counter, #CLOCKS_AT
    jz  write_clocks
    cmp counter, #TRANSPORT_AT
    jz  write_transport
    cmp counter, #MECHANISM_AT
    jz  write_mechanism
    cmp counter, #LOG_AT
    jz  write_log
    cmp counter, #DOMAIN_AT
    jz  write_domain
    cmp counter, #PRIORITIES_AT
    jz  write_cell
    cmp counter, #UTC_AT
    jz  write_cell
    cmp counter, #QUALITY_AT
    jz  write_cell
    jmp wrong
write_role:
    cmp work[0:2], #ROLE_BEST + 1
    jc  wrong
    mov window, io_value
    mov started, #0
    mov rate_wanted, #0
    jmp written
write_clocks:
    cmp work[0:2], #1000
    jnc wrong
    jmp write_cell
write_transport:
    cmp work[0:2], #2
    jc  wrong
    jmp write_cell
write_mechanism:
    sub work[0:2], #1
    cmp work[0:2], #2
    jc  wrong
    jmp write_cell
write_log:
    and work[0:2], #0xff
    tst work[1], #0x80
    jz  write_slower
    sub work[0:2], #0x100
write_slower:
    mov window, work[0:2]
    jmp written
write_domain:
    cmp work[0:2], #256
    jc  wrong
write_cell:
    mov window, io_value
written:
    call restart
    mov io_done, #0
    ret
set_time:
    ; Not where a second ends meanwhile.
    cmp io_now[3], #0x3b99
    jc  set_time
    mov io_now[0], #0
    mov io_now[1:2], io_value
    mov have_there, #0
    mov io_done, #0
    ret

; ---- the port begins anew --------------------------------------------------------------------
routine restart
    mov identity[0:4], io_identity
    mov identity[4], #1
    ; Data set of this clock: {0, priority1}, class and accuracy, variance, {priority2, identity}, no steps.
    mov own[3:4], identity[0:4]
    mov own[7:2], #0
    mov own[9:5], identity
    mov counter, #8
own_shift:
    shr own[3:5]
    sub counter, #1
    jnz own_shift
    and own[3], #0xff
    mov byte, priorities[1]
    call up
    add own[3], byte
    mov byte, priorities[1]
    call down
    mov own[0], byte
    mov own[1:2], quality
    mov sync_ticks, clocks
    mov counter, #4
ticks_shift:
    shr sync_ticks
    sub counter, #1
    jnz ticks_shift
    mov log_sync, log[1]
    and log_sync, #0xff
    mov log_announce, log[1]
    add log_announce, #1
    and log_announce, #0xff
    mov request_log, log[1]
    mov byte, domain[1]
    call up
    mov domain_byte, byte
    mov parent, #-1
    mov candidate, #-1
    mov qualified, #0
    mov settled, #0
    mov sync_at, now
    mov announce_at, now
    mov request_at, now
    mov state[0], #0
    mov offset, #0
    mov offset_all, #0
    mov io_offset, #0
    mov delay, #0
    mov io_delay, #0
    mov delay_ns, #0
    mov mean_delay, #0
    mov utc_used, utc
    mov steps, #0
    mov awaits_pdelay, #0
    call forget
    mov has_delay, #0
    mov mode, #OPEN
    mov lag, p_departure_lead
    tst transport[1], #1
    jz  over_udp
    add mode, #LAYER2
    mov lag, p_departure_lead_l2
over_udp:
    mov departure_lead, lag
    mov integral, #0
    mov state[1], #MASTER
    cmp role[1], #ROLE_MASTER
    jz  own_parent
    mov state[1], #LISTENING
    call listen
    cmp role[1], #ROLE_OFF
    jnz restarted
    mov mode, #0
    mov state[1], #DISABLED
restarted:
    tst started, #STEPPED
    jnz keeps_rate
    mov rate_wanted, #0
    call steer
keeps_rate:
    mov io_mode, mode
    ret
own_parent:
    mov parent, own
    jmp restarted

; Until when the master must be heard.
routine listen
    mov parent_until, now
    mov counter, #TIMEOUT * 2
listen_more:
    add parent_until, sync_ticks
    sub counter, #1
    jnz listen_more
    ret

; What was measured of a way whose ends are others now; so the clock is no longer locked.
routine forget
    mov locked, #0
    and mode, #OPEN + LAYER2
    mov io_mode, mode
    mov have_there, #0
    mov awaits_follow, #0
    mov awaits_response, #0
    cmp mechanism[1], #PEER
    jz  forgot
    mov has_delay, #0
forgot:
    ret

; ---- a message -------------------------------------------------------------------------------
routine receive
    cmp io_length, #34
    jnc malformed
    mov byte, rx_kind
    and byte, #0x000f
    cmp byte, #2
    jnz malformed
    cmp io_length, rx_size
    jnc malformed
    mov kind, rx_kind
    and kind, #0x0f0f
    mov counter, #44
    cmp kind, #KIND_PDELAY_REQ
    jz  long
    cmp kind, #KIND_PDELAY_RESP
    jz  long
    cmp kind, #KIND_DELAY_RESP
    jz  long
    cmp kind, #KIND_PDELAY_FOLLOW
    jz  long
    cmp kind, #KIND_MANAGEMENT
    jz  long
    cmp kind, #KIND_ANNOUNCE
    jnz has_size
    mov counter, #64
    jmp has_size
long:
    mov counter, #54
has_size:
    cmp rx_size, counter
    jnc malformed
    cmp state[1], #DISABLED
    jz  ignored
    mov byte, rx_domain
    and byte, #0xff00
    cmp byte, domain_byte
    jnz ignored
    cmp kind, #KIND_SYNC
    jz  got_sync
    cmp kind, #KIND_FOLLOW_UP
    jz  got_follow_up
    cmp kind, #KIND_DELAY_RESP
    jz  got_delay_resp
    cmp kind, #KIND_DELAY_REQ
    jz  got_delay_req
    cmp kind, #KIND_ANNOUNCE
    jz  got_announce
    cmp kind, #KIND_PDELAY_REQ
    jz  got_pdelay_req
    cmp kind, #KIND_PDELAY_RESP
    jz  got_pdelay_resp
    cmp kind, #KIND_PDELAY_FOLLOW
    jz  got_pdelay_follow
    cmp kind, #KIND_MANAGEMENT
    jz  got_management
    jmp ignored
got_management:
    cmp rx[17:4], identity[0:4]
    jz  to_clock
    cmp rx[17:4], #-1
    jnz ignored
to_clock:
    cmp rx[21], #1
    jz  to_port
    cmp rx[21], #0xffff
    jnz ignored
to_port:
    mov action, rx[23]
    and action, #0x0f00
    cmp action, #RESPONSE
    jz  ignored
    cmp action, #ACKNOWLEDGE
    jz  ignored
    call manage
    ret
ignored:
    mov io_events, #IGNORED
    ret
malformed:
    mov io_events, #MALFORMED
    ret

got_sync:
    cmp rx_source, parent_source
    jnz ignored
    call arrival
    mov sync_time, t
    mov sync_sequence, rx_sequence
    mov sync_correction, rx_correction
    mov sync_interval, rx_log
    mov awaits_follow, #1
    tst rx_flags, #TWO_STEP
    jnz received
    jmp origin_known
got_follow_up:
    cmp rx_source, parent_source
    jnz ignored
    tst awaits_follow, #1
    jz  ignored
    cmp rx_sequence, sync_sequence
    jnz ignored
    add sync_correction, rx_correction
origin_known:
    mov awaits_follow, #0
    mov from_seconds, rx_seconds
    mov from[4:2], rx_ns
    mov t, sync_time
    call measured
received:
    ret

got_delay_resp:
    cmp rx_source, parent_source
    jnz ignored
    cmp rx_requesting, identity
    jnz ignored
    tst awaits_response, #1
    jz  ignored
    cmp rx_sequence, request_sequence
    jnz ignored
    mov awaits_response, #0
    mov request_log, rx_log
    mov t_seconds, rx_seconds
    mov t[3], #0
    mov t[4:2], rx_ns
    mov from, request_time
    call between
    tst far, #1
    jnz received
    tst have_there, #1
    jz  received
    sub apart, rx_correction
    add apart, there
    call delay_found
    ret

got_delay_req:
    cmp state[1], #MASTER
    jnz ignored
    cmp mechanism[1], #PEER
    jz  ignored
    call arrival
    mov out_kind, #KIND_DELAY_RESP
    mov out_size, #54
    mov out_flags, #0
    mov out_control, log_sync
    add out_control, #0x0300
    call head
    call answers
    mov io_send, #54
    call sent
    ret

got_pdelay_req:
    cmp mechanism[1], #PEER
    jnz ignored
    call arrival
    mov out_kind, #KIND_PDELAY_RESP
    mov out_size, #54
    mov out_flags, #TWO_STEP
    mov out_control, #0x057f
    call head
    call answers
    mov tx_correction, #0
    mov io_send, #54 + EVENT + TO_PEER
    call sent
    call departure
    mov tx[0], #KIND_PDELAY_FOLLOW
    mov tx[3], #0
    mov tx_correction, rx_correction_all
    mov tx_seconds, t_seconds
    mov tx_ns, t[4:2]
    mov io_send, #54 + TO_PEER
    call sent
    ret

got_pdelay_resp:
    cmp rx_requesting, identity
    jnz ignored
    tst awaits_pdelay, #1
    jz  ignored
    cmp rx_sequence, request_sequence
    jnz ignored
    call arrival
    mov response_time, t
    mov response_correction, rx_correction
    mov response_from[0:3], rx_seconds
    mov response_from[3], #0
    mov response_from[4:2], rx_ns
    tst rx_flags, #TWO_STEP
    jz  pdelay_known
    mov awaits_pdelay, #2
    ret
got_pdelay_follow:
    cmp rx_requesting, identity
    jnz ignored
    tst awaits_pdelay, #2
    jz  ignored
    cmp rx_sequence, request_sequence
    jnz ignored
    ; What the other one took, from its request's arrival to its response.
    add response_correction, rx_correction
    mov t_seconds, rx_seconds
    mov t[3], #0
    mov t[4:2], rx_ns
    mov from, response_from
    call between
    add response_correction, apart
pdelay_known:
    mov awaits_pdelay, #0
    mov t, response_time
    mov from, request_time
    call between
    tst far, #1
    jnz received
    sub apart, response_correction
    call delay_found
    ret

; ---- best master clock (9.3) -----------------------------------------------------------------
got_announce:
    cmp role[1], #ROLE_MASTER
    jz  ignored
    tst rx_flags, #ALTERNATE
    jnz ignored
    cmp rx_source[0:4], identity[0:4]
    jz  ignored
    mov heard[0:9], rx[23:9]
    and heard[0], #0x00ff
    mov byte, heard[8]
    call up
    mov heard_utc[0], rx_flags
    and heard_utc[0], #0x003f
    add heard_utc[0], byte
    mov heard_utc[1], rx[22]
    and heard[8], #0xff00
    mov heard_source, rx_source
    ; 255 steps and more are too far (9.3.2.5).
    mov work[0:2], heard[7:2]
    and work[0], #0x00ff
    cmp work[0:2], #0x0000ff00
    jc  ignored
    cmp heard_source, parent_source
    jz  from_parent
    cmp heard_source, candidate_source
    jz  from_candidate
    mov work[0:2], now
    sub work[0:2], candidate_until
    jp  new_candidate
    cmp heard, candidate
    jc  ignored
new_candidate:
    mov qualified, #0
    jmp keep_candidate
from_candidate:
    mov qualified, #0
    mov work[0:2], now
    sub work[0:2], candidate_until
    jp  keep_candidate
    mov qualified, #1
keep_candidate:
    mov candidate, heard
    mov candidate_utc, heard_utc
    mov candidate_until, now
    mov counter, #WINDOW * 2
candidate_later:
    add candidate_until, sync_ticks
    sub counter, #1
    jnz candidate_later
    call decide
    ret
from_parent:
    mov parent, heard
    mov utc_used, heard_utc
    call listen
    call decide
    ret

; Who is the best: of the master, the candidate, and in the role of the best this clock itself, once it has listened.
routine decide
    mov before, parent
    mov work[0:2], now
    sub work[0:2], candidate_until
    jn  candidate_fresh
    mov candidate, #-1
    mov qualified, #0
candidate_fresh:
    tst qualified, #1
    jz  no_candidate
    cmp candidate, parent
    jc  no_candidate
    mov parent, candidate
    mov utc_used, candidate_utc
    mov candidate, #-1
    mov qualified, #0
    call listen
no_candidate:
    cmp role[1], #ROLE_BEST
    jnz decided
    cmp parent_source, #-1
    jnz own_too
    cmp state[1], #LISTENING
    jz  decided
own_too:
    cmp own, parent
    jc  decided
    mov parent, own
decided:
    mov steps, parent[7:2]
    mov counter, #8
steps_shift:
    shr steps
    sub counter, #1
    jnz steps_shift
    mov steps[0], #0
    cmp parent_source, before[9:5]
    jz  decided_same
    call forget
    mov state[1], #UNCALIBRATED
    cmp parent_source, #-1
    jz  no_parent
    cmp parent_source, identity
    jnz decided_same
    mov state[1], #MASTER
    mov settled, #0
    mov utc_used, utc
    mov sync_at, now
    mov announce_at, now
    ret
no_parent:
    mov state[1], #LISTENING
decided_same:
    ret

; The master, or any, was not heard for too long.
routine master_gone
    mov parent, #-1
    mov utc_used, utc
    call listen
    cmp role[1], #ROLE_BEST
    jnz gone_slave
    mov state[1], #UNCALIBRATED            ; it has listened
gone_slave:
    call decide
    cmp parent_source, #-1
    jnz gone
    mov state[1], #LISTENING
    call forget
gone:
    ret

; ---- times -----------------------------------------------------------------------------------
; t := when the message came, when the last one left.
routine arrival
    mov stamp, io_arrival
    mov lag, p_arrival_lag
    call whole_time
    ret
routine departure
    mov stamp, io_departure
    mov lag, departure_lead
    call whole_time
    ret

; t := the time of `stamp`, which is less than 32,768 s from now, and `lag` earlier.
routine whole_time
    mov t_seconds, io_now[0:3]
    cmp t_seconds, io_now[0:3]
    jnz whole_time
    ; The clock may have been set back meanwhile: the stamp is later then.
    mov work[0:3], #0
    mov work[2], stamp[0]
    sub work[2], t[2]
    jp  whole_later
    mov work[0:2], #-1
whole_later:
    add t_seconds, work[0:3]
    mov t[3], #0
    mov t[4:2], stamp[1:2]
    sub t_ns, lag
    jn  whole_before
    cmp t_ns, #SECOND
    jnc whole_right
    sub t_ns, #SECOND
    add t_seconds, #1
whole_right:
    ret
whole_before:
    add t_ns, #SECOND
    sub t_seconds, #1
    ret

; apart := t - from, in nanoseconds; far: it is more than a second, and seconds_apart with `apart` is the difference.
routine between
    mov far, #0
    mov seconds_apart, t_seconds
    sub seconds_apart, from_seconds
    mov apart, t_ns
    sub apart, from_ns
    cmp seconds_apart, #0
    jz  are_near
    cmp seconds_apart, #1
    jz  second_more
    cmp seconds_apart, #-1
    jz  second_less
    mov far, #1
are_near:
    ret
second_more:
    add apart, #SECOND
    mov seconds_apart, #0
    ret
second_less:
    sub apart, #SECOND
    mov seconds_apart, #0
    ret

; ---- the way there: offset and servo ---------------------------------------------------------
; t is when a Sync came, `from` when it left.
routine measured
    call between
    sub apart, sync_correction
    tst far, #1
    jnz step
    mov there, apart
    tst have_there, #1
    jnz not_the_first
    mov have_there, #1
    cmp mechanism[1], #PEER
    jz  not_the_first
    call schedule
not_the_first:
    mov offset_ns, there
    sub offset_ns, delay_ns
    mov offset, offset_ns[1:2]
    mov io_offset, offset
    mov offset_all[0:3], offset_ns
    mov io_events, #OFFSET_FOUND
    tst started, #STEPPED
    jz  step
    ; Once more when the delay is known first, for the way up to then was taken for no delay.
    tst started, #STEPPED_AGAIN
    jnz no_step_again
    tst has_delay, #1
    jz  no_step_again
    mov started, #STEPPED + STEPPED_AGAIN
    mov work[0:3], offset_ns
    add work[0:3], #LOCKED - 1
    cmp work[0:3], #2 * LOCKED - 1
    jc  step
no_step_again:
    mov work[0:3], offset_ns
    add work[0:3], #STEP
    cmp work[0:3], #2 * STEP + 1
    jc  step

    ; To undo 1 ns in an interval, a clock must change by 2^shift / 2^32 ns.
    mov byte, sync_interval
    and byte, #0xff
    tst byte, #0x80
    jz  positive_log
    sub byte, #0x100
positive_log:
    mov shift, #32
    sub shift, p_clocks_log
    sub shift, byte
    jn  no_shift
    cmp shift, #20
    jnc shift_right
    mov shift, #20
    jmp shift_right
no_shift:
    mov shift, #0
shift_right:
    mov gain, offset_ns
shift_more:
    cmp shift, #0
    jz  shifted_all
    add gain, gain
    sub shift, #1
    jmp shift_more
shifted_all:
    ; Gains of 1/2 and, of the integral, 1/16 an interval: critically damped. At the limit of the rate the integral stands still.
    shr gain
    mov rate_wanted, #0
    sub rate_wanted, gain
    shr gain
    shr gain
    shr gain
    mov work[0:3], rate_wanted
    add work[0:3], integral
    call clamp
    sub work[0:3], integral
    cmp work[0:3], rate_wanted
    jnz at_limit
    sub integral, gain
    jmp in_limit
at_limit:
    mov settled, #0
in_limit:
    add rate_wanted, integral
    mov work[0:3], rate_wanted
    call clamp
    mov rate_wanted, work[0:3]
    call steer
    mov locked, #0
    and mode, #OPEN + LAYER2
    mov work[0:3], offset_ns
    add work[0:3], #LOCKED - 1
    cmp work[0:3], #2 * LOCKED - 1
    jc  not_settled
    add settled, #1
    cmp settled, #SETTLED
    jnc not_locked
    mov settled, #SETTLED
    tst has_delay, #1
    jz  not_locked
    mov locked[1], #1
    add mode, #IS_LOCKED
    jmp not_locked
not_settled:
    mov settled, #0
not_locked:
    mov io_mode, mode
    mov state[1], #SLAVE
    ret

; The clock goes back by seconds_apart and `apart`, that is forward by their opposite.
step:
    sub apart, delay_ns
    mov work[0:3], #0
    sub work[0:3], seconds_apart
    mov more[0:3], #0
    sub more[0:3], apart
step_borrow:
    cmp more[0:3], #0
    jp  step_positive
    add more[0:3], #SECOND
    sub work[0:3], #1
    jmp step_borrow
step_positive:
    cmp more[0:3], #SECOND
    jn  step_whole
    sub more[0:3], #SECOND
    add work[0:3], #1
    jmp step_positive
step_whole:
    ; The clock itself carries a second of nanoseconds to its seconds.
    add more[0:3], p_hold
    mov io_hold, #1
held:
    add more[1:2], io_now[3:2]
    add work[0:3], io_now[0:3]
    mov io_now[3:2], more[1:2]
    mov io_now[0:3], work[0:3]
    mov io_hold, #0
released:
    and started, #STEPPED_AGAIN
    add started, #STEPPED
    mov settled, #0
    mov awaits_pdelay, #0
    call forget
    mov drops, #1
    ret

; work[0:3] := what is nearest to it of -RATE_MAX to RATE_MAX.
routine clamp
    mov more[0:3], work[0:3]
    sub more[0:3], #RATE_MAX
    jn  not_above
    mov work[0:3], #RATE_MAX
    ret
not_above:
    mov more[0:3], work[0:3]
    add more[0:3], #RATE_MAX
    jp  not_below
    mov work[0:3], #-RATE_MAX
not_below:
    ret

routine steer
    mov rate, rate_wanted[1:2]
    mov io_rate, rate
    ret

; ---- the way back: the path's delay ----------------------------------------------------------
; `apart` is twice the delay: a mean of eight, for the path changes less than the measurements; until the clock runs evenly, the last one.
routine delay_found
    mov work[0:3], apart
    mov work[3], #0
    shr work
    tst has_delay, #1
    jz  first_delay
    cmp settled, #SETTLED
    jnc first_delay
    sub work, mean_delay
    shr work
    shr work
    shr work
    add mean_delay, work
    jmp delay_known
first_delay:
    mov has_delay, #1
    mov mean_delay, work
delay_known:
    mov work, mean_delay
    add work, #0x8000
    mov delay_ns, work[0:3]
    mov delay, work[1:2]
    mov io_delay, delay
    ret

; Delay_Req at a random time (9.5.11.2): 0 to 2 intervals of 2^request_log s; Pdelay_Req an interval of Sync after the last one.
routine schedule
    mov more[0:2], sync_ticks
    cmp mechanism[1], #PEER
    jz  scheduled
    mov byte, request_log
    and byte, #0xff
    tst byte, #0x80
    jz  request_positive
    sub byte, #0x100
request_positive:
    sub byte, log[1]
    jn  request_faster
request_slower:
    cmp byte, #0
    jz  request_interval
    tst more[0], #0xf000
    jnz request_interval
    add more[0:2], more[0:2]
    sub byte, #1
    jmp request_slower
request_faster:
    shr more[0:2]
    add byte, #1
    jn  request_faster
request_interval:
    ; Times a random number of 16 bits, times two.
    mov byte, io_random
    mov work[0:2], #0
    mov counter, #15
random_more:
    shr byte
    jnc random_zero
    add work[0:2], more[0:2]
random_zero:
    shr work[0:2]
    sub counter, #1
    jnz random_more
    mov more[0:2], work[0:2]
    add more[0:2], work[0:2]
scheduled:
    mov request_at, now
    add request_at, more[0:2]
    ret

routine request
    call schedule
    add request_sequence, #1
    mov out_kind, #KIND_DELAY_REQ
    mov out_size, #44
    mov out_control, #0x017f
    mov size, #44 + EVENT
    cmp mechanism[1], #PEER
    jnz request_head
    mov out_kind, #KIND_PDELAY_REQ
    mov out_size, #54
    mov out_control, #0x057f
    mov size, #54 + EVENT + TO_PEER
request_head:
    mov out_flags, #0
    call head
    mov tx_sequence, request_sequence
    mov tx[17:10], #0
    mov io_send, size
    call sent
    call departure
    mov request_time, t
    mov awaits_response, #1
    mov awaits_pdelay, #1
    ret

; ---- messages of a master --------------------------------------------------------------------
routine send_sync
    mov out_kind, #KIND_SYNC
    mov out_size, #44
    mov out_flags, #TWO_STEP
    mov out_control, log_sync
    call head
    mov tx_sequence, my_sync
    mov tx[17:5], #0
    mov io_send, #44 + EVENT
    call sent
    call departure
    mov tx[0], #KIND_FOLLOW_UP
    mov tx[3], #0
    add out_control, #0x0200
    mov tx[16], out_control
    mov tx_seconds, t_seconds
    mov tx_ns, t[4:2]
    mov io_send, #44
    call sent
    add my_sync, #1
    ret

routine send_announce
    mov out_kind, #KIND_ANNOUNCE
    mov out_size, #64
    mov out_flags, utc[0]
    and out_flags, #0x00ff
    mov out_control, log_announce
    add out_control, #0x0500
    call head
    mov tx_sequence, my_announce
    mov tx[17:5], #0
    mov tx[22], utc[1]
    mov tx[23:8], own[0:8]
    mov byte, utc[0]
    call down
    add byte, own[8]
    mov tx[31], byte
    mov io_send, #64
    call sent
    add my_announce, #1
    ret

; What all messages have.
routine head
    mov tx[0], out_kind
    mov tx[1], out_size
    mov tx[2], domain_byte
    mov tx[3], out_flags
    mov tx[4:6], #0
    mov tx[10:5], identity
    mov tx[16], out_control
    ret

; An answer to the message, with the time t.
routine answers
    mov tx_correction, rx_correction_all
    mov tx_sequence, rx_sequence
    mov tx_seconds, t_seconds
    mov tx_ns, t[4:2]
    mov tx_requesting, rx_source
    ret

; Waits until the message has left.
routine sent
    tst io_status, #SENDING
    jnz sent
    ret

; byte := its low byte in the high one; its high byte in the low one.
routine up
    mov counter, #8
up_more:
    add byte, byte
    sub counter, #1
    jnz up_more
    ret
routine down
    mov counter, #8
down_more:
    shr byte
    sub counter, #1
    jnz down_more
    and byte, #0x00ff
    ret

; ---- management (15): what describes the clock can be read -----------------------------------
constant GET 0x0000
constant SET 0x0100
constant RESPONSE 0x0200
constant COMMAND 0x0300
constant ACKNOWLEDGE 0x0400
constant NO_SUCH_ID 2
constant NOT_SUPPORTED 6
at tx_data tx[27:37] 37

data layer "IEEE802.3"
data product "Fadelink;UDP/IP;-"
data revision ";1;"
data user "FEB"
data profile_end_to_end 0x001b 0x1900 0x0100
data profile_peer 0x001b 0x1900 0x0200

routine manage
    mov out_kind, #KIND_MANAGEMENT
    mov out_flags, #0
    mov out_control, #0x047f
    mov tx_sequence, rx_sequence
    mov tx[17:5], rx_source
    ; As many hops as the request took.
    mov byte, rx[22]
    call down
    mov size, rx[22]
    and size, #0x00ff
    sub byte, size
    mov size, byte
    call up
    add byte, size
    mov tx[22], byte
    mov tx[23], #RESPONSE
    cmp action, #COMMAND
    jnz no_command
    mov tx[23], #ACKNOWLEDGE
no_command:
    mov tx[24], #1
    mov tx[26], rx[26]
    mov byte, #NOT_SUPPORTED
    cmp action, #GET
    jnz refuse
    cmp rx[26], #0x2000
    jz  default_data
    cmp rx[26], #0x2001
    jz  current_data
    cmp rx[26], #0x2002
    jz  parent_data
    cmp rx[26], #0x2003
    jz  time_data
    cmp rx[26], #0x2004
    jz  port_data
    cmp rx[26], #0x0001
    jz  description
    mov size, #0
    cmp rx[26], #0x0000
    jz  reply
    mov byte, #NO_SUCH_ID
refuse:
    mov tx[24], #2
    mov tx[25], #8
    mov tx[26], byte
    mov tx[27], rx[26]
    mov tx[28:2], #0
    mov out_size, #60
    jmp reply_out
reply:
    mov byte, size
    add byte, #2
    mov tx[25], byte
    mov out_size, size
    add out_size, #54
reply_out:
    call head
    mov io_send, out_size
    call sent
    ret

default_data:
    mov byte, #0x0100                      ; two steps
    cmp role[1], #ROLE_SLAVE
    jnz default_rest
    mov byte, #0x0300                      ; slave only
default_rest:
    mov tx_data[0], byte
    mov tx_data[1], #1
    mov shifted, own[0:8]
    call shift
    mov tx_data[2:3], shifted[0:3]
    mov tx_data[5:4], identity[0:4]
    mov tx_data[9], domain_byte
    mov size, #20
    jmp reply
current_data:
    mov tx_data[0], steps[1]
    mov tx_data[1:4], offset_all
    mov tx_data[5:4], mean_delay
    mov size, #18
    jmp reply
parent_data:
    mov tx_data[0:5], parent_source
    mov tx_data[5:4], #0x0000ffff7fffffff
    mov shifted, parent[0:8]
    call shift
    mov tx_data[9:7], shifted[0:7]
    mov size, #32
    jmp reply
time_data:
    mov tx_data[0], utc_used[1]
    mov byte, utc_used[0]
    call down
    mov size, byte
    mov byte, utc_used[0]
    call up
    add byte, size
    mov tx_data[1], byte
    mov size, #4
    jmp reply
port_data:
    mov tx_data[0:5], identity
    mov byte, state[1]
    call up
    add byte, log_sync
    mov tx_data[5], byte
    mov tx_data[6:4], #0
    cmp mechanism[1], #PEER
    jnz port_logs
    mov tx_data[6:4], mean_delay
port_logs:
    mov byte, log_announce
    call up
    add byte, #TIMEOUT
    mov tx_data[10], byte
    mov byte, log_sync
    call up
    add byte, mechanism[1]
    mov tx_data[11], byte
    mov byte, log_sync
    call up
    add byte, #2
    mov tx_data[12], byte
    mov size, #26
    jmp reply
description:
    mov tx_data[0], #0x8000                ; an ordinary clock
    mov tx_data[1:5], layer
    mov tx_data[6], #6
    mov tx_data[7], io_identity[0]
    call describe_address
    mov tx_data[10], #1
    mov tx_data[11], #4
    mov tx_data[12:2], io_ip
    mov tx_data[14:2], #0
    mov tx_data[16:9], product
    mov tx_data[25:2], revision
    mov tx_data[27:2], user
    mov tx_data[29:3], profile_end_to_end
    cmp mechanism[1], #PEER
    jnz described
    mov tx_data[29:3], profile_peer
described:
    mov size, #64
    jmp reply

; The middle bytes of the MAC address are on both sides of the identity's FF FE.
routine describe_address
    mov byte, io_identity[1]
    and byte, #0xff00
    mov size, io_identity[2]
    and size, #0x00ff
    add byte, size
    mov tx_data[8], byte
    mov tx_data[9], io_identity[3]
    ret

routine shift
    mov counter, #8
shift_byte:
    add shifted, shifted
    sub counter, #1
    jnz shift_byte
    ret
