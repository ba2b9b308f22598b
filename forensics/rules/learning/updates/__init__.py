"""Rules for what changes the weights: learning rates and gradients."""
