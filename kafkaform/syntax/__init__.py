"""In: HCL text, or values to be written as HCL.
Out: nodes with positions and diagnostics; formatted text.
Must not know: what a block means, values beyond literals, Kafka, files on disk."""
