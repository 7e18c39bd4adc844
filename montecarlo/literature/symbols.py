"""What quantities of papers are called, as LaTeX; by name, as `QUANTITIES` has them."""

SYMBOLS = {
    "raised-weight": "p_1",
    "noisy-weight": r"\operatorname{E} p_1",
    "growth-exponent": r"\alpha: s \propto (\ln n)^\alpha",
    "late-exponent": r"\alpha: s \propto (\ln n)^\alpha",
    "extension-factor": r"(0.1 \ln(n/n_0) + 1)^2",
    "growth-factor": r"s(n)/s(n_0)",
    "row-concentration": r"\operatorname{E} \sum p^2",
    "frozen-share": r"\operatorname{E} \sum p^2 / (1 - \sqrt{2 \ln n}/s)",
    "beyond-critical": r"\sqrt{d_k} / \sqrt{2 \ln n}",
    "concentration-ratio": (
        r"\operatorname{E} \|p\|^2 : \operatorname{E} \|p_{\sqrt{d_k}}\|^2"
    ),
    "jacobian-ratio": (
        r"\operatorname{E} \|J\|_F^2 : \operatorname{E} \|J_{\sqrt{d_k}}\|_F^2"
    ),
    "query-gradient-ratio": (
        r"\operatorname{E} |\partial o/\partial q|^2 : "
        r"\operatorname{E} |\partial o_{\sqrt{d_k}}/\partial q|^2"
    ),
    "small-jacobians": (
        r"\operatorname{P}(\|J\|_F^2 \lt \operatorname{E} \|J_{\sqrt{d_k}}\|_F^2)"
    ),
    "spectral-norm": r"\max \|J\|_2",
    "searched-norm": r"\max \|J\|_2",
    "largest-entry": r"\max |J_{ij}|",
    "mask-entropy": (
        r"\frac{1}{n} \sum_{i \le n} \operatorname{E} H_i / \operatorname{E} H_n"
    ),
    "mask-concentration": (
        r"\frac{1}{n} \sum_{i \le n} \operatorname{E} Y_i / \operatorname{E} Y_n, "
        r"\; Y = \sum p^2"
    ),
    "sink-entropy": r"\operatorname{E} H_\Delta / \operatorname{E} H_0",
    "sink-concentration": (
        r"\operatorname{E} Y_\Delta / \operatorname{E} Y_0, \; Y = \sum p^2"
    ),
    "sink-underflow": r"\operatorname{P}(\hat p = 0)",
    "row-underflow": r"\operatorname{P}(\hat p = 0)",
    "score-exponent": (
        r"\beta: \sqrt{\operatorname{E} (q\cdot k)^2} \propto d_k^\beta"
    ),
}
