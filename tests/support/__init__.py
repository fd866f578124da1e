"""What tests, benches and demos share: paths, namespaces, boards, models, the virtual machine and the broker."""
