"""The dashboard's frame: `streamlit run dashboard/app.py`."""

import streamlit as st

from dashboard.data import store_path
from dashboard.pages import pages
from toolkit.errors import ToolkitError
from toolkit.runs.reader import list_runs

st.set_page_config(page_title="ELMo toolkit", page_icon=":material/layers:", layout="wide")
page = st.navigation(pages())

with st.sidebar:
    try:
        store = store_path()
        st.caption(f"Run store · {len(list_runs(store))} runs")
        st.code(str(store), language=None, wrap_lines=True)
    except ToolkitError as error:
        st.error(str(error), title="The settings cannot be read")
        st.stop()

try:
    page.run()
except ToolkitError as error:  # anything else is a defect and shows its traceback
    st.error(str(error), icon=":material/error:")
