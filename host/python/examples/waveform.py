# %% [markdown]
# # A waveform from a front-end board
# Receives a second of data, takes each 64-bit word as four samples of 16 bits, and plots the first ones.
# Run it as a script or cell by cell: `python waveform.py INTERFACE FEB [FILE.png]`

# %%
import sys
import time

import fadelink
import numpy as np

if len(sys.argv) < 3:
    sys.exit("usage: python waveform.py INTERFACE FEB [FILE.png]")
interface, mac, *file = sys.argv[1:]

# %% Receive
samples, words_seen = [], 0
with fadelink.Receiver(interface) as receiver, receiver.open(mac) as feb:
    print(f"identity {feb.command(0x0100):#x}")
    feb.start()
    end = time.monotonic() + 1
    for words in feb.blocks(timeout=0.2):
        if not samples and len(words):
            samples.append(words[:4096].view("<u2").copy())  # what is kept is copied
        words_seen += len(words)
        if end and time.monotonic() > end:
            feb.stop()
            end = None
    counters = feb.counters()
print(f"{words_seen} words, {counters['duplicates']} packets twice, {counters['missing_frames']} frames lost and sent again")

# %% Plot
samples = np.concatenate(samples)
if file:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4))
    axes.plot(samples[: 4 * 1024 : 4], linewidth=0.8)
    axes.set(xlabel="sample", ylabel="ADC counts", title=f"{mac} on {interface}")
    figure.savefig(file[0], dpi=120)
