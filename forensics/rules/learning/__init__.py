"""Rules for finite but wrong learning."""
