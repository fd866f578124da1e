; SPDX-License-Identifier: Apache-2.0
;
; What the program of PTP (ptp.asm) does with a message, and how it chooses its master.

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
