// SPDX-License-Identifier: GPL-2.0-only
/*
 * Steers the data of FEBs that a program has opened to its AF_XDP sockets. All
 * other frames go their usual way, to other programs and to the kernel: those of
 * other FEBs, and those with a command response, for another program may have
 * sent the command. FADE v1 has no responses, and its frame type where FADE-10G
 * has its version.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ETH_P_FADE 0xFADE
#define FADE1_TYPE_DATA 0xA5A5
#define FADE_TYPE_DATA 0xA5A5
#define FADE_TYPE_LAST 0xA5A6

struct fade_header {
	struct ethhdr eth;
	__be16 version;
	__be16 type;
	__be16 sequence;
	__be32 packet;
	__be32 delay;
	__be16 response_code;
} __attribute__((packed));

/* An AF_XDP socket takes the frames of one receive queue only. */
struct feb_key {
	__u8 mac[ETH_ALEN];
	__u16 queue;
};

/* FEB and queue: index of the socket for its frames. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct feb_key);
	__type(value, __u32);
} febs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

static __always_inline int is_data(const struct fade_header *frame)
{
	if (frame->version == bpf_htons(FADE1_TYPE_DATA))
		return 1;
	return (frame->type == bpf_htons(FADE_TYPE_DATA) ||
		frame->type == bpf_htons(FADE_TYPE_LAST)) &&
	       !frame->response_code;
}

SEC("xdp.frags")
int steer(struct xdp_md *ctx)
{
	struct fade_header *frame = (void *)(long)ctx->data;
	struct feb_key key = {};
	__u32 *socket;

	if ((void *)(frame + 1) > (void *)(long)ctx->data_end ||
	    frame->eth.h_proto != bpf_htons(ETH_P_FADE) || !is_data(frame))
		return XDP_PASS;
	__builtin_memcpy(key.mac, frame->eth.h_source, ETH_ALEN);
	key.queue = ctx->rx_queue_index;
	socket = bpf_map_lookup_elem(&febs, &key);
	if (!socket)
		return XDP_PASS;
	return bpf_redirect_map(&sockets, *socket, XDP_PASS);
}

char LICENSE[] SEC("license") = "GPL";
