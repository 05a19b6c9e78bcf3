// The source of the target that makes the precompiled header of torch.
