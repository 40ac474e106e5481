"""What the numbers say: chance, findings, the paper's claims, heads that match, studies side by side."""
