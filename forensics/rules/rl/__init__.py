"""Rules of the learning shape for reinforcement learning on language models (GRPO, PPO, EBFT): one file per symptom."""
