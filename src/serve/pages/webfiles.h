/* SPDX-License-Identifier: Apache-2.0 */
/* Files of src/serve/pages/web in the program: tools/embed makes the texts when it is built. */
#pragma once

extern const char webfiles_page_css[], webfiles_page_js[];
extern const char webfiles_timeline_js[];
