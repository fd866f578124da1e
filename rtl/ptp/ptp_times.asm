; SPDX-License-Identifier: Apache-2.0
;
; Times in the program of PTP (ptp.asm): the offset and the servo, the path's delay.

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
