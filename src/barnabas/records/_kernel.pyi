"""The compiled kernel has the names and signatures of its plain twin; test_kernel compares them."""

from barnabas.records._kernel_plain import ColumnBuilder as ColumnBuilder
from barnabas.records._kernel_plain import OffsetMap as OffsetMap
from barnabas.records._kernel_plain import PayloadBuilder as PayloadBuilder
from barnabas.records._kernel_plain import Record as Record
from barnabas.records._kernel_plain import check as check
from barnabas.records._kernel_plain import decode as decode
from barnabas.records._kernel_plain import encode as encode
from barnabas.records._kernel_plain import filter as filter
from barnabas.records._kernel_plain import keys as keys
from barnabas.records._kernel_plain import place as place
from barnabas.records._kernel_plain import row_sum as row_sum
