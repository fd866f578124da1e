; SPDX-License-Identifier: Apache-2.0
;
; The program of PTP: an ordinary clock (IEEE 1588-2008), for ptp_machine. tools/ptp_assemble.py translates it, and
; tells what a line can be.
;
; Nanoseconds and seconds are signed numbers of 3 words; a time is 3 words of seconds and 3 of nanoseconds, the first of which
; is zero. A clock's data set, for the comparison of 9.3.4, is that part of an Announce which decides, in its order, and
; who sent it: of two, the lower number is the better clock.

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
