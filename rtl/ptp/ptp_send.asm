; SPDX-License-Identifier: Apache-2.0
;
; What the program of PTP (ptp.asm) sends: messages of a master, answers, management.

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
