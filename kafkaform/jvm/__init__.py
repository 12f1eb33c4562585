"""In: a Java and its jars. Out: a file of classes that later processes start from.

Must not know: Kafka, Spark, who starts Java and what for.
"""

from .archive import FOLDER, Archive, make_archive

__all__ = ["FOLDER", "Archive", "make_archive"]
