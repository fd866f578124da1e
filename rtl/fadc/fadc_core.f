// Files of fadc_core, written by tools/file_lists.py; paths are those of the repository.
rtl/fadc/fadc_pkg.sv
rtl/common/link_pkg.sv
rtl/ptp/ptp_pkg.sv
rtl/fadc/fadc_lane.sv
rtl/fadc/fadc_builder.sv
rtl/common/stream_fifo.sv
rtl/fadc/fadc_burst_buffer.sv
rtl/fadc/fadc_former.sv
rtl/fadc/fadc_inbox.sv
rtl/fadc/fadc_channel.sv
rtl/fadc/fadc_hit_queue.sv
rtl/fadc/fadc_module.sv
rtl/fadc/fadc_timebase.sv
rtl/fadc/fadc_link.sv
rtl/fadc/fadc_schedule.sv
rtl/fadc/fadc_core.sv
